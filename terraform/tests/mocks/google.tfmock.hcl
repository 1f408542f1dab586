# Values that Google would set, for attributes whose form the provider or a module
# checks. Terraform's own mock values do not have these forms.

mock_data "google_project" {
  defaults = {
    number = "123456789012"
  }
}

mock_resource "google_service_account" {
  defaults = {
    id     = "projects/affinity-test/serviceAccounts/some-account@affinity-test.iam.gserviceaccount.com"
    name   = "projects/affinity-test/serviceAccounts/some-account@affinity-test.iam.gserviceaccount.com"
    email  = "some-account@affinity-test.iam.gserviceaccount.com"
    member = "serviceAccount:some-account@affinity-test.iam.gserviceaccount.com"
  }
}
