# An exclusion keeps matching entries out of the log that Logging stores and bills.
# Metrics of log lines and Cloud Run's metrics of requests also count excluded entries.
# An alert that matches log lines sees only stored entries, so no exclusion may match a
# line of an alert. logs_test.go checks these filters.

# Cloud Run and the load balancer log the URL of each request. search-insights puts an
# app's key into it, and some routes and pages have a user's token in it. Logging keeps entries
# for 30 days and more people read it than the engine's tables, so it does not store
# these entries.
resource "google_logging_project_exclusion" "urls" {
  name        = "affinity-urls"
  description = "Request logs whose URL holds a key or a user token."
  filter      = "resource.type=(\"cloud_run_revision\" OR \"http_load_balancer\") AND httpRequest.requestUrl=~\"(?i)(x-algolia-api-key|x-algolia-usertoken|userToken|writeKey)=|/1/(profiles|usertokens|explain|export|optouts|consents|users|identities|boosts)/|/1/(usertokens|identities)[?]|/console/users/|/console/[^?]*[?]\""

  depends_on = [terraform_data.project]
}

locals {
  # Cloud Run logs every request, and each push of Pub/Sub is one. An operator who looks for a
  # fault needs the requests that failed and those that were slow. An entry without a
  # status or a latency stays.
  healthy_requests = "resource.type=\"cloud_run_revision\" AND log_id(\"run.googleapis.com/requests\") AND httpRequest.status<400 AND httpRequest.latency<\"1s\""

  # process logs a line for each message that it has applied.
  healthy_messages = "resource.type=\"cloud_run_revision\" AND jsonPayload.message=\"events applied\" AND jsonPayload.lagMs<1000"

  # profiles logs a line for one in 16 reads of a stored profile, which only the metric needs.
  healthy_reads = "resource.type=\"cloud_run_revision\" AND jsonPayload.message=\"stored profile read\" AND jsonPayload.ms<1000"

  excluded_logs = {
    requests = { filter = local.healthy_requests, keep = var.request_log_sample, description = "Cloud Run's logs of requests that succeeded within a second." }
    reads    = { filter = local.healthy_reads, keep = 0, description = "Lines of stored profiles that were read within a second." }
    messages = { filter = local.healthy_messages, keep = var.message_log_sample, description = "Lines of messages that were applied within a second." }
  }
}

resource "google_logging_project_exclusion" "healthy" {
  for_each = { for name, logs in local.excluded_logs : name => logs if logs.keep < 1 }

  name        = "affinity-healthy-${each.key}"
  description = each.value.description
  filter      = each.value.keep == 0 ? each.value.filter : "${each.value.filter} AND sample(insertId, ${1 - each.value.keep})"

  depends_on = [terraform_data.project]
}

# Who read a key or a secret. The entries are few: functions read their secrets when they
# start, and keep the key's answers.
resource "google_project_iam_audit_config" "this" {
  for_each = toset(var.audited_services)

  project = var.project_id
  service = each.key

  audit_log_config {
    log_type = "DATA_READ"
  }

  audit_log_config {
    log_type = "DATA_WRITE"
  }

  depends_on = [terraform_data.project]
}
