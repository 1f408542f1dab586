# What the engine promises, and whether its hosts answer.

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
  dead_letter_subscriptions = ["affinity-events-dead-letter"]
  queues                    = ["affinity-worker", "affinity-purges"]
  bigtable_instances        = ["affinity"]
  security_policy           = "affinity-edge"
  alert_email               = "oncall@example.com"
  project_id                = "shop-prod"
  hosts                     = ["api.example.com"]
  console_host              = "console.example.com"
}

run "objectives" {
  assert {
    condition = (google_monitoring_slo.availability.goal == 0.995 && google_monitoring_slo.latency.goal == 0.99 && google_monitoring_slo.freshness.goal == 0.99 &&
      one(one(one(google_monitoring_slo.latency.request_based_sli).distribution_cut).range).max == 250 &&
    one(one(one(google_monitoring_slo.freshness.windows_based_sli).metric_mean_in_range).range).max == 30)
    error_message = "An objective has another goal or limit."
  }

  assert {
    condition     = one(one(google_monitoring_slo.availability.request_based_sli).good_total_ratio).bad_service_filter == "${one(one(google_monitoring_slo.availability.request_based_sli).good_total_ratio).total_service_filter} AND metric.labels.response_code_class=\"5xx\"" && !strcontains(one(one(google_monitoring_slo.availability.request_based_sli).good_total_ratio).total_service_filter, "affinity-worker")
    error_message = "Availability is not the share of 5xx among the answers of public functions."
  }

  assert {
    condition = { for speed in ["fast", "slow"] : speed => [for c in google_monitoring_alert_policy.burning["latency-${speed}"].conditions : "${one(c.condition_threshold).filter} > ${one(c.condition_threshold).threshold_value}"] } == {
      fast = ["select_slo_burn_rate(\"${google_monitoring_slo.latency.id}\", \"3600s\") > 14.4", "select_slo_burn_rate(\"${google_monitoring_slo.latency.id}\", \"300s\") > 14.4"]
      slow = ["select_slo_burn_rate(\"${google_monitoring_slo.latency.id}\", \"21600s\") > 6", "select_slo_burn_rate(\"${google_monitoring_slo.latency.id}\", \"1800s\") > 6"]
    }
    error_message = "An alert on latency reads another objective, or opens at another rate."
  }

  assert {
    condition     = alltrue([for p in google_monitoring_alert_policy.burning : p.combiner == "AND"])
    error_message = "A short burst alone opens an alert on an objective."
  }

  assert {
    condition     = one(google_monitoring_uptime_check_config.edge["api.example.com"].monitored_resource).labels.host == "api.example.com" && one(google_monitoring_uptime_check_config.edge["api.example.com"].http_check).validate_ssl && one(google_monitoring_uptime_check_config.edge["api.example.com"].http_check).path == "/docs"
    error_message = "The uptime check does not call /docs of the host with TLS."
  }

  assert {
    condition     = one(google_monitoring_uptime_check_config.edge["console.example.com"].http_check).path == "/console/login" && google_monitoring_uptime_check_config.edge["console.example.com"].period == "300s" && google_monitoring_alert_policy.unreachable["console.example.com"].severity == "WARNING"
    error_message = "The console's host is not called every five minutes, or its alert wakes people."
  }
}

run "objective_in_percent" {
  command = plan
  variables {
    objectives = { availability = 99.5 }
  }
  expect_failures = [var.objectives]
}
