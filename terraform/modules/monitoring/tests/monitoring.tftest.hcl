mock_provider "google" {
  mock_resource "google_monitoring_notification_channel" {
    defaults = { id = "projects/p/notificationChannels/1" }
  }
}

variables {
  services = {
    ingest     = ["affinity-ingest", "affinity-ingest-globex"]
    imports    = ["affinity-imports"]
    profiles   = ["affinity-profiles", "affinity-profiles-globex"]
    rank       = ["affinity-rank"]
    strategies = ["affinity-strategies"]
    catalog    = ["affinity-catalog"]
    admin      = ["affinity-admin"]
    segments   = ["affinity-segments"]
    process    = ["affinity-process"]
    worker     = ["affinity-worker"]
  }
  events_subscriptions      = ["affinity-events-process", "affinity-events-acme-process"]
  dead_letter_subscriptions = ["affinity-events-dead-letter", "affinity-events-dead-letter.us"]
  queues                    = ["affinity-worker", "affinity-purges"]
  bigtable_instances        = ["affinity", "affinity-us"]
  security_policy           = "affinity-edge"
  alert_email               = "oncall@example.com"
  project_id                = "shop-prod"
  hosts                     = ["api.example.com"]
}

run "metric_filters" {
  command = plan

  variables {
    services = { ingest = ["i"], profiles = ["p"], process = ["a"], worker = ["w"] }
  }

  assert {
    condition     = google_logging_metric.this["lag"].filter == "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=(\"a\" OR \"i\" OR \"p\" OR \"w\") AND jsonPayload.message=(\"events applied\")"
    error_message = "The filter of the metric lag is wrong: ${google_logging_metric.this["lag"].filter}"
  }

  assert {
    condition     = endswith(google_logging_metric.this["jobs_failed"].filter, "jsonPayload.message=(\"recompute ended\" OR \"reenrich ended\" OR \"migration ended\" OR \"crowd ended\" OR \"segments ended\" OR \"segmentexport ended\" OR \"backtest ended\" OR \"daterows ended\" OR \"linkpreview ended\" OR \"report ended\" OR \"residents ended\" OR \"move ended\" OR \"deletion ended\") AND jsonPayload.state=\"failed\"")
    error_message = "The filter of the metric jobs_failed is wrong: ${google_logging_metric.this["jobs_failed"].filter}"
  }
}

run "metric_types" {
  command = plan

  assert {
    condition = (google_logging_metric.this["lag"].value_extractor == "EXTRACT(jsonPayload.lagMs)" &&
      one(google_logging_metric.this["lag"].metric_descriptor).value_type == "DISTRIBUTION" &&
      one(google_logging_metric.this["lag"].metric_descriptor).unit == "ms" &&
      one(one(google_logging_metric.this["lag"].bucket_options).exponential_buckets).num_finite_buckets == 21 &&
    google_logging_metric.this["lag"].label_extractors == tomap({ app = "EXTRACT(jsonPayload.app)" }))
    error_message = "The metric lag is not a distribution by app: ${jsonencode(google_logging_metric.this["lag"])}"
  }

  assert {
    condition     = one(google_logging_metric.this["dead_letters"].metric_descriptor).value_type == "INT64" && length(google_logging_metric.this["dead_letters"].bucket_options) == 0
    error_message = "The metric dead_letters is not a counter."
  }

  assert {
    condition     = google_logging_metric.this["jobs_ended"].label_extractors["job"] == "REGEXP_EXTRACT(jsonPayload.message, \"^([a-z]+) \")"
    error_message = "The label job is not the first word of the message."
  }

  assert {
    condition = alltrue([for m in google_logging_metric.this :
      join(" ", sort([for l in one(m.metric_descriptor).labels : l.key])) == join(" ", sort(keys(m.label_extractors)))
    ])
    error_message = "A metric does not declare exactly the labels that it extracts."
  }
}

run "alert_parts" {
  assert {
    condition = alltrue([for p in concat(values(google_monitoring_alert_policy.measured), values(google_monitoring_alert_policy.matched), values(google_monitoring_alert_policy.burning), values(google_monitoring_alert_policy.stored), values(google_monitoring_alert_policy.unreachable), [google_monitoring_alert_policy.lag, google_monitoring_alert_policy.folds]) :
      length(p.conditions) == (p.combiner == "AND" ? 3 : 1) && startswith(one(p.documentation).content, "Runbook: ") && length(one(p.documentation).content) > 80 &&
      !strcontains(one(p.documentation).content, "\n") && p.notification_channels == tolist(["projects/p/notificationChannels/1"])
    ])
    error_message = "An alert does not have exactly one condition, or the three of an objective, a runbook of one line, and a notification channel."
  }

  assert {
    condition = toset(keys(output.alerts)) == toset([
      "affinity: events wait to be applied", "affinity: profiles lag behind events", "affinity: dead letters wait for a replay",
      "affinity: accepted events of an app do not count",
      "affinity: a public function answers 5xx", "affinity: a private function keeps failing", "affinity: many requests have wrong credentials",
      "affinity: a job failed", "affinity: an audit found a difference",
      "affinity: the worker fails again and again", "affinity: the worker dropped a task", "affinity: a nightly round did not begin",
      "affinity: a manifest is damaged", "affinity: a block of events is damaged", "affinity: a damaged block stays", "affinity: histories are not folded",
      "affinity: the availability objective is missed in two days", "affinity: the latency objective is missed in two days", "affinity: the freshness objective is missed in two days",
      "affinity: the stored objective is missed in two days", "affinity: the stored objective is missed in five days",
      "affinity: the availability objective is missed in five days", "affinity: the latency objective is missed in five days", "affinity: the freshness objective is missed in five days",
      "affinity: api.example.com is not reachable",
      "affinity: a Bigtable cluster is near its CPU", "affinity: a Bigtable node is near its CPU", "affinity: a Bigtable cluster is nearly full", "affinity: a replica lags behind",
    ])
    error_message = "The alerts in the output are wrong: ${jsonencode(keys(output.alerts))}"
  }

  assert {
    condition     = one(google_monitoring_notification_channel.email["oncall@example.com"].labels[*]).email_address == "oncall@example.com"
    error_message = "The notification channel does not lead to alert_email."
  }
}

run "alert_conditions" {
  # `go test ./scripts/affinity/plan` reads the number for the bill.
  assert {
    condition     = output.conditions == 40 + length(var.hosts)
    error_message = "The alerts have ${output.conditions} conditions with ${length(var.hosts)} hosts."
  }

  command = plan

  assert {
    condition = (
      strcontains(one(one(google_monitoring_alert_policy.measured["backlog"].conditions).condition_threshold).filter, "subscription_id=one_of(\"affinity-events-process\", \"affinity-events-acme-process\") AND metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\"") &&
      strcontains(one(one(google_monitoring_alert_policy.measured["dead_letters"].conditions).condition_threshold).filter, "subscription_id=one_of(\"affinity-events-dead-letter\", \"affinity-events-dead-letter.us\") AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\"")
    )
    error_message = "An alert on a subscription reads another subscription or metric."
  }

  # The alert on public functions compares their 5xx with all their answers. Private
  # functions have an alert of their own.
  assert {
    condition = (
      one(one(google_monitoring_alert_policy.measured["errors"].conditions).condition_threshold).filter == "${one(one(google_monitoring_alert_policy.measured["errors"].conditions).condition_threshold).denominator_filter} AND metric.labels.response_code_class=\"5xx\"" &&
      strcontains(one(one(google_monitoring_alert_policy.measured["errors"].conditions).condition_threshold).denominator_filter, "one_of(\"affinity-admin\", \"affinity-catalog\", \"affinity-imports\", \"affinity-ingest\", \"affinity-ingest-globex\", \"affinity-profiles\", \"affinity-profiles-globex\", \"affinity-rank\", \"affinity-segments\", \"affinity-strategies\")") &&
      strcontains(one(one(google_monitoring_alert_policy.measured["failures"].conditions).condition_threshold).filter, "one_of(\"affinity-process\", \"affinity-worker\")")
    )
    error_message = "The alert on 5xx of public functions is wrong: ${jsonencode(google_monitoring_alert_policy.measured["errors"].conditions)}"
  }

  assert {
    condition     = one(one(google_monitoring_alert_policy.lag.conditions).condition_prometheus_query_language).query == "histogram_quantile(0.99, sum by (le, app) (rate(logging_googleapis_com:user_affinity_lag_bucket{monitored_resource=\"cloud_run_revision\"}[5m]))) + on () group_left () (1000 * max(bigtable_googleapis_com:replication_max_delay{monitored_resource=\"bigtable_table\",instance=~\"affinity|affinity-us\",table=~\"users([.].*)?\"}) or vector(0)) > 30000"
    error_message = "The query of the lag alert is wrong: ${one(one(google_monitoring_alert_policy.lag.conditions).condition_prometheus_query_language).query}"
  }

  # A log metric has no time series before its first line.
  assert {
    condition     = one(one(google_monitoring_alert_policy.lag.conditions).condition_prometheus_query_language).disable_metric_validation
    error_message = "Monitoring would validate the query, and the first apply would fail."
  }

  assert {
    condition     = !anytrue([for p in google_monitoring_alert_policy.measured : strcontains(one(one(p.conditions).condition_threshold).filter, "logging.googleapis.com/user")])
    error_message = "A threshold alert reads a log metric, which Monitoring refuses for ten minutes after the metric is created."
  }

  assert {
    condition = (one(one(google_monitoring_alert_policy.matched["job_failed"].conditions).condition_matched_log).filter == google_logging_metric.this["jobs_failed"].filter &&
    one(one(google_monitoring_alert_policy.matched["audit"].conditions).condition_matched_log).filter == google_logging_metric.this["audit_differences"].filter)
    error_message = "An alert and its metric have different filters."
  }

  # At least one failure in each ten minutes for half an hour, of the worker only.
  assert {
    condition = (
      endswith(one(one(google_monitoring_alert_policy.measured["persists"].conditions).condition_threshold).filter, "service_name=one_of(\"affinity-worker\") AND metric.type=\"run.googleapis.com/request_count\" AND metric.labels.response_code_class=\"5xx\"") &&
      one(one(google_monitoring_alert_policy.measured["persists"].conditions).condition_threshold).duration == "1800s" &&
      one(one(google_monitoring_alert_policy.measured["persists"].conditions).condition_threshold).aggregations[0].alignment_period == "600s"
    )
    error_message = "The alert on persistent failures is wrong: ${jsonencode(google_monitoring_alert_policy.measured["persists"].conditions)}"
  }

  # Cloud Scheduler, not the engine, logs that a nightly round did not start.
  assert {
    condition = (
      one(one(google_monitoring_alert_policy.matched["nightly"].conditions).condition_matched_log).filter == "resource.type=\"cloud_scheduler_job\" AND resource.labels.job_id=~\"^affinity-(nightly|full)\" AND severity>=ERROR" &&
      one(one(google_monitoring_alert_policy.matched["denied"].conditions).condition_matched_log).filter == "${google_logging_metric.this["requests_denied"].filter} AND jsonPayload.requests>=600" &&
      one(one(google_monitoring_alert_policy.matched["task_dropped"].conditions).condition_matched_log).filter == google_logging_metric.this["tasks_dropped"].filter &&
      endswith(google_logging_metric.this["tasks_dropped"].filter, "jsonPayload.message=(\"task dropped\")")
    )
    error_message = "The alert on nightly rounds or on dropped tasks is wrong: ${jsonencode(google_monitoring_alert_policy.matched["nightly"].conditions)}"
  }

  # Operators run each command as it is printed: with go run, with a key if it calls
  # the engine, and with the deployment if it calls Google.
  assert {
    condition = alltrue([for text in values(output.alerts) :
      !strcontains(text, "`affinity ") &&
      alltrue([for c in ["recompute", "reenrich", "crowd", "schema", "audit", "explain"] : !strcontains(text, "`go run ./scripts/affinity ${c}") || strcontains(text, "--url https://HOST --app APP --key KEY")]) &&
      alltrue([for c in regexall("`go run ./scripts/affinity (?:app|replay)[^`]*`", text) : strcontains(c, "--project PROJECT") && (strcontains(c, "replay") || (strcontains(c, "--database affinity ") && strcontains(c, "--keys-database affinity-keys --instance affinity")))])
    ])
    error_message = "A command of a runbook does not run as it is printed: ${jsonencode(output.alerts)}"
  }
}

run "thresholds" {
  command = plan

  variables {
    name_prefix = "aff-dev"
    thresholds = {
      oldest_message_seconds = 7
      lag_ms                 = 8
      dead_letters           = 9
      error_ratio            = 0.5
      failures_per_minute    = 30
      cpu_load               = 0.6
      replication_seconds    = 5
      renotify_seconds       = 600
    }
  }

  assert {
    condition = { for name, p in google_monitoring_alert_policy.measured : name => one(one(p.conditions).condition_threshold).threshold_value } == {
      backlog = 7, dead_letters = 9, errors = 0.5, failures = 0.5, persists = 0, cpu = 0.6, hottest = 0.9, storage = 0.7, replication = 5
    }
    error_message = "The alerts do not use the thresholds that are set: ${jsonencode({ for name, p in google_monitoring_alert_policy.measured : name => one(one(p.conditions).condition_threshold).threshold_value })}"
  }

  assert {
    condition     = strcontains(one(one(google_monitoring_alert_policy.lag.conditions).condition_prometheus_query_language).query, "user_aff_dev_lag_bucket{") && endswith(one(one(google_monitoring_alert_policy.lag.conditions).condition_prometheus_query_language).query, " > 8")
    error_message = "The query of the lag alert is wrong: ${one(one(google_monitoring_alert_policy.lag.conditions).condition_prometheus_query_language).query}"
  }

  assert {
    condition     = alltrue([for p in google_monitoring_alert_policy.matched : one(one(p.alert_strategy).notification_rate_limit).period == "600s"])
    error_message = "Alerts on log lines do not use renotify_seconds."
  }

  assert {
    condition     = google_logging_metric.this["lag"].name == "aff-dev/lag"
    error_message = "The metric's name does not begin with the prefix."
  }
}

run "dashboard" {
  command = plan

  assert {
    condition     = length(jsondecode(google_monitoring_dashboard.this.dashboard_json).mosaicLayout.tiles) == 19
    error_message = "The dashboard does not have 19 charts: ${jsonencode([for t in jsondecode(google_monitoring_dashboard.this.dashboard_json).mosaicLayout.tiles : t.widget.title])}"
  }

  # Each tile has a position of its own.
  assert {
    condition     = length(distinct([for t in jsondecode(google_monitoring_dashboard.this.dashboard_json).mosaicLayout.tiles : "${try(t.xPos, 0)} ${try(t.yPos, 0)}"])) == 19
    error_message = "Two tiles have the same position."
  }

  # Monitoring drops values that are 0 or empty, so they would show as a change in
  # every plan.
  assert {
    condition     = !strcontains(google_monitoring_dashboard.this.dashboard_json, "Pos\":0") && !strcontains(google_monitoring_dashboard.this.dashboard_json, "[]") && !strcontains(google_monitoring_dashboard.this.dashboard_json, "null")
    error_message = "The dashboard has a value that is 0 or empty: ${google_monitoring_dashboard.this.dashboard_json}"
  }

  assert {
    condition = alltrue([for what in [
      "one_of(\\\"affinity-ingest\\\", \\\"affinity-ingest-globex\\\") AND metric.labels.response_code_class=\\\"4xx\\\"",
      "run.googleapis.com/request_latencies\\\" AND resource.labels.service_name=one_of(\\\"affinity-profiles\\\", \\\"affinity-profiles-globex\\\")",
      "pubsub.googleapis.com/subscription/oldest_unacked_message_age", "pubsub.googleapis.com/subscription/num_undelivered_messages",
      "cloudtasks.googleapis.com/queue/depth", "bigtable.googleapis.com/cluster/cpu_load_hottest_node",
      "bigtable.googleapis.com/cluster/cpu_load_by_app_profile_by_method_by_table", "networksecurity.googleapis.com/https/request_count",
      "user_affinity_events_sum{monitored_resource=\\\"cloud_run_revision\\\"}[$${__interval}]", "p99 $${resource.labels.service_name}",
    ] : strcontains(google_monitoring_dashboard.this.dashboard_json, what)])
    error_message = "The dashboard lacks a chart: ${google_monitoring_dashboard.this.dashboard_json}"
  }

  # Every metric is used.
  assert {
    condition = alltrue([for name in keys(google_logging_metric.this) :
      strcontains(google_monitoring_dashboard.this.dashboard_json, "user/affinity/${name}\\\"") || strcontains(google_monitoring_dashboard.this.dashboard_json, "user_affinity_${name}_") ||
      strcontains(one(one(google_monitoring_alert_policy.folds.conditions).condition_prometheus_query_language).query, "user_affinity_${name}{") ||
      contains([for p in google_monitoring_alert_policy.matched : one(one(p.conditions).condition_matched_log).filter], google_logging_metric.this[name].filter)
    ])
    error_message = "A metric is not in any chart or alert."
  }
}

run "without_edge_and_email" {
  command = plan

  variables {
    security_policy = null
    alert_email     = null
  }

  assert {
    condition     = !strcontains(google_monitoring_dashboard.this.dashboard_json, "networksecurity") && length(google_monitoring_notification_channel.email) == 0
    error_message = "Without an edge and an email there is a chart of the edge, or a notification channel."
  }

  assert {
    condition     = length(coalesce(google_monitoring_alert_policy.lag.notification_channels, [])) == 0
    error_message = "An alert has a notification channel without alert_email."
  }
}

run "function_without_service" {
  command = plan
  variables {
    services = { ingest = ["i"], profiles = ["p"], process = [], worker = ["w"] }
  }
  expect_failures = [var.services]
}

run "invalid_email" {
  command = plan
  variables {
    alert_email = "oncall"
  }
  expect_failures = [var.alert_email]
}

run "negative_threshold" {
  command = plan
  variables {
    thresholds = { dead_letters = -1 }
  }
  expect_failures = [var.thresholds]
}

run "ratio_in_percent" {
  command = plan
  variables {
    thresholds = { error_ratio = 5 }
  }
  expect_failures = [var.thresholds]
}

run "zero_lag" {
  command = plan
  variables {
    thresholds = { lag_ms = 0 }
  }
  expect_failures = [var.thresholds]
}

run "renotify_too_often" {
  command = plan
  variables {
    thresholds = { renotify_seconds = 1 }
  }
  expect_failures = [var.thresholds]
}

run "prefix_in_upper_case" {
  command = plan
  variables {
    name_prefix = "Affinity"
  }
  expect_failures = [var.name_prefix]
}

run "budget" {
  command = plan

  variables {
    budget = { billing_account = "012345-6789AB-CDEF01", amount = 2000, project_id = "p", project_number = "123456789012" }
  }

  assert {
    condition     = google_billing_budget.this[0].billing_account == "012345-6789AB-CDEF01" && one(google_billing_budget.this[0].budget_filter).projects == toset(["projects/123456789012"]) && one(one(google_billing_budget.this[0].amount).specified_amount).units == "2000"
    error_message = "The budget does not have the account, project and amount that are set: ${jsonencode(google_billing_budget.this[0])}"
  }

  assert {
    condition     = [for r in google_billing_budget.this[0].threshold_rules : "${r.threshold_percent} ${r.spend_basis}"] == ["0.5 CURRENT_SPEND", "0.9 CURRENT_SPEND", "1 CURRENT_SPEND", "1 FORECASTED_SPEND"]
    error_message = "The budget does not warn before it is spent: ${jsonencode(google_billing_budget.this[0].threshold_rules)}"
  }

  assert {
    condition     = length(google_billing_budget.this[0].all_updates_rule) == 1
    error_message = "The budget sends no mail to alert_email."
  }
}

run "budget_without_email" {
  command = plan

  variables {
    alert_email = null
    budget      = { billing_account = "012345-6789AB-CDEF01", amount = 2000, project_id = "p", project_number = "123456789012" }
  }

  assert {
    condition     = length(google_billing_budget.this) == 1 && length(google_billing_budget.this[0].all_updates_rule) == 0
    error_message = "Without alert_email the budget has an update rule, or there is no budget."
  }
}

run "no_budget" {
  command = plan

  assert {
    condition     = length(google_billing_budget.this) == 0 && output.budget == null
    error_message = "There is a budget without a billing account."
  }
}
