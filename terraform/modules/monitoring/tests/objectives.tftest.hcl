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
      one(one(one(google_monitoring_slo.latency.request_based_sli).distribution_cut).range).max == 250 && output.objectives.stored == 0.99 && output.objectives.stored_ms == 250 &&
    one(one(one(google_monitoring_slo.freshness.windows_based_sli).metric_mean_in_range).range).max == 30)
    error_message = "An objective has another goal or limit."
  }

  assert {
    condition     = one(one(google_monitoring_slo.availability.request_based_sli).good_total_ratio).bad_service_filter == "${one(one(google_monitoring_slo.availability.request_based_sli).good_total_ratio).total_service_filter} AND metric.labels.response_code_class=\"5xx\"" && !strcontains(one(one(google_monitoring_slo.availability.request_based_sli).good_total_ratio).total_service_filter, "affinity-worker")
    error_message = "Availability is not the share of 5xx among the answers of public functions."
  }

  assert {
    condition = { for speed in ["fast", "slow"] : speed => [for c in slice(google_monitoring_alert_policy.burning["latency-${speed}"].conditions, 0, 2) : "${one(c.condition_threshold).filter} > ${one(c.condition_threshold).threshold_value}"] } == {
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

# The functions for which clients wait keep an instance.
run "warm" {
  variables {
    warm = true
  }

  assert {
    condition     = output.objectives.availability == 0.9995 && output.objectives.stored == 0.99 && output.objectives.stored_ms == 20
    error_message = "The promises of warm functions are ${jsonencode(output.objectives)}."
  }

  assert {
    condition     = contains(one(one(google_logging_metric.this["stored_reads"].bucket_options).explicit_buckets).bounds, 20) && length(one(google_logging_metric.this["stored_reads"].bucket_options).exponential_buckets) == 0
    error_message = "The buckets of the metric of reads have no bound at the promise."
  }

  assert {
    condition = { for speed, p in google_monitoring_alert_policy.stored : speed => one(one(p.conditions).condition_prometheus_query_language).query } == {
      fast = "(1 - sum(increase(logging_googleapis_com:user_affinity_stored_reads_bucket{monitored_resource=\"cloud_run_revision\",le=~\"20([.]0)?\"}[3600s])) / sum(increase(logging_googleapis_com:user_affinity_stored_reads_count{monitored_resource=\"cloud_run_revision\"}[3600s])) > 0.144) and (1 - sum(increase(logging_googleapis_com:user_affinity_stored_reads_bucket{monitored_resource=\"cloud_run_revision\",le=~\"20([.]0)?\"}[300s])) / sum(increase(logging_googleapis_com:user_affinity_stored_reads_count{monitored_resource=\"cloud_run_revision\"}[300s])) > 0.144) and (16 * sum(increase(logging_googleapis_com:user_affinity_stored_reads_count{monitored_resource=\"cloud_run_revision\"}[3600s])) > 1000)"
      slow = "(1 - sum(increase(logging_googleapis_com:user_affinity_stored_reads_bucket{monitored_resource=\"cloud_run_revision\",le=~\"20([.]0)?\"}[21600s])) / sum(increase(logging_googleapis_com:user_affinity_stored_reads_count{monitored_resource=\"cloud_run_revision\"}[21600s])) > 0.06) and (1 - sum(increase(logging_googleapis_com:user_affinity_stored_reads_bucket{monitored_resource=\"cloud_run_revision\",le=~\"20([.]0)?\"}[1800s])) / sum(increase(logging_googleapis_com:user_affinity_stored_reads_count{monitored_resource=\"cloud_run_revision\"}[1800s])) > 0.06) and (16 * sum(increase(logging_googleapis_com:user_affinity_stored_reads_count{monitored_resource=\"cloud_run_revision\"}[21600s])) > 1000)"
    }
    error_message = "An alert on stored reads asks ${jsonencode({ for speed, p in google_monitoring_alert_policy.stored : speed => one(one(p.conditions).condition_prometheus_query_language).query })}"
  }
}

# One failed request at night opens no alert: each wants a least number of requests.
run "least_requests" {
  variables {
    objectives = { least_requests = 400 }
  }

  assert {
    condition = alltrue([for name, p in google_monitoring_alert_policy.burning : length(p.conditions) == 3 &&
      one(p.conditions[2].condition_threshold).threshold_value == 400 && one(p.conditions[2].condition_threshold).comparison == "COMPARISON_GT" &&
      one(one(p.conditions[2].condition_threshold).aggregations).alignment_period == (endswith(name, "fast") ? "3600s" : "21600s") &&
      one(one(p.conditions[2].condition_threshold).aggregations).per_series_aligner == "ALIGN_DELTA" && one(one(p.conditions[2].condition_threshold).aggregations).cross_series_reducer == "REDUCE_SUM"
    ]) && alltrue([for p in google_monitoring_alert_policy.stored : endswith(one(one(p.conditions).condition_prometheus_query_language).query, " > 400)")])
    error_message = "An alert on an objective opens however few requests there are."
  }

  assert {
    condition = { for name, p in google_monitoring_alert_policy.burning : name => regex("metric.type=\"([^\"]+)\"", one(p.conditions[2].condition_threshold).filter)[0] if endswith(name, "fast") } == {
      availability-fast = "run.googleapis.com/request_count"
      latency-fast      = "run.googleapis.com/request_count"
      freshness-fast    = "pubsub.googleapis.com/subscription/sent_message_count"
    }
    error_message = "An alert counts something else than the requests of its objective."
  }

  assert {
    condition     = strcontains(one(google_monitoring_alert_policy.burning["availability-fast"].conditions[2].condition_threshold).filter, "affinity-ingest") && !strcontains(one(google_monitoring_alert_policy.burning["latency-fast"].conditions[2].condition_threshold).filter, "affinity-ingest")
    error_message = "An alert counts the requests of other functions."
  }
}

run "limit_without_a_bucket" {
  command = plan
  variables {
    objectives = { stored_ms = 30 }
  }
  expect_failures = [var.objectives]
}

run "no_least_requests" {
  command = plan
  variables {
    objectives = { least_requests = 0 }
  }
  expect_failures = [var.objectives]
}

run "objective_in_percent" {
  command = plan
  variables {
    objectives = { availability = 99.5 }
  }
  expect_failures = [var.objectives]
}
