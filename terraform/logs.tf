# Cloud Run and the load balancer log the URL of each request. search-insights puts an
# app's key into it, and some routes have a user's token in it. Logging keeps entries
# for 30 days and more people read it than the engine's tables, so it does not store
# these entries. Metrics of requests, and the engine's own lines, do not need them.
# logs_test.go compares the filter with the routes.
resource "google_logging_project_exclusion" "urls" {
  name        = "affinity-urls"
  description = "Request logs whose URL holds a key or a user token."
  filter      = "resource.type=(\"cloud_run_revision\" OR \"http_load_balancer\") AND httpRequest.requestUrl=~\"(?i)(x-algolia-api-key|x-algolia-usertoken|userToken)=|/1/(profiles|usertokens|explain|export|optouts|boosts)/\""

  depends_on = [terraform_data.project]
}
