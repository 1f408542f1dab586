# Each environment has a state of its own, in a bucket of its own project.
# environments/*.backend says which; see
# "One state for each project" in functions/docs/operate/deploy.md.
terraform {
  backend "gcs" {}
}
