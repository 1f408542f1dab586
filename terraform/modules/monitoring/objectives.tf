# What the engine promises over 28 days: availability, latency and freshness. Cloud Run
# counts requests only after DNS, the certificate and Cloud Armor let them pass: uptime.tf
# checks these.

locals {
  # What is promised: objectives, or the defaults.
  promised = merge(
    {
      availability   = var.warm ? 0.9995 : 0.995
      stored         = 0.99
      stored_ms      = var.warm ? 20 : 250
      latency        = 0.99
      latency_ms     = 250
      freshness      = 0.99
      fresh_seconds  = 30
      least_requests = 1000
    },
    { for name, value in var.objectives : name => value if value != null },
  )

  # When an alert opens: if the error budget was spent at more than this multiple of the even
  # rate, over a long window, so that it matters, and over a short one, so that it goes on.
  # The numbers are those of https://sre.google/workbook/alerting-on-slos/, for 28 days.
  burn_rates = {
    fast = { rate = 14.4, long = "3600s", short = "300s", severity = "ERROR", left = "two days" }
    slow = { rate = 6, long = "21600s", short = "1800s", severity = "WARNING", left = "five days" }
  }

  served = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(", ", [for s in local.public : "\"${s}\""])})"
  reads  = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(", ", [for s in sort(var.services["profiles"]) : "\"${s}\""])})"

  objectives = {
    availability = {
      slo     = google_monitoring_slo.availability.id
      count   = "${local.served} AND metric.type=\"run.googleapis.com/request_count\""
      what    = "Public functions answer 5xx"
      runbook = "Follow the alert on 5xx: read the services' lines \"request failed\"."
    }
    latency = {
      slo     = google_monitoring_slo.latency.id
      count   = "${local.reads} AND metric.type=\"run.googleapis.com/request_count\""
      what    = "Reads of profiles take longer than ${local.promised.latency_ms} ms"
      runbook = "Compare the charts of reads and of Bigtable's CPU: if a node is hot, raise the number of nodes; if profiles is at its maximum of instances, raise max_instances; if a recompute runs, reads compute profiles themselves until it ends."
    }
    freshness = {
      slo     = google_monitoring_slo.freshness.id
      count   = "resource.type=\"pubsub_subscription\" AND ${local.events_subscriptions} AND metric.type=\"pubsub.googleapis.com/subscription/sent_message_count\""
      what    = "Messages of events wait longer than ${local.promised.fresh_seconds} s"
      runbook = "Follow the alert that events wait to be applied: look at process's lines \"request failed\", its number of instances, and Bigtable's CPU."
    }
  }

  burning = merge([for objective, o in local.objectives : { for speed, b in local.burn_rates : "${objective}-${speed}" => {
    title    = "the ${objective} objective is missed in ${b.left}"
    severity = b.severity
    runbook  = "${o.what} so often that the error budget of 28 days is gone in ${b.left}. ${o.runbook}"
    windows  = [b.long, b.short]
    slo      = o.slo
    count    = o.count
    rate     = b.rate
  } }]...)

  # The share of reads of stored profiles that took longer than promised, in a window.
  slow_reads = { for speed, b in local.burn_rates : speed => [for window in [b.long, b.short] :
    "1 - sum(increase(${local.promql["stored_reads"]}_bucket{${local.read_lines},le=~\"${local.promised.stored_ms}([.]0)?\"}[${window}])) / sum(increase(${local.promql["stored_reads"]}_count{${local.read_lines}}[${window}])) > ${format("%.6g", b.rate * (1 - local.promised.stored))}"
  ] }
  read_lines = "monitored_resource=\"cloud_run_revision\""
}

resource "google_monitoring_custom_service" "this" {
  service_id   = var.name_prefix
  display_name = "${var.name_prefix}: personalization engine"
  user_labels  = var.labels
}

resource "google_monitoring_slo" "availability" {
  service             = google_monitoring_custom_service.this.service_id
  slo_id              = "availability"
  display_name        = "requests that are not answered 5xx"
  goal                = local.promised.availability
  rolling_period_days = 28

  request_based_sli {
    good_total_ratio {
      bad_service_filter   = "${local.served} AND metric.type=\"run.googleapis.com/request_count\" AND metric.labels.response_code_class=\"5xx\""
      total_service_filter = "${local.served} AND metric.type=\"run.googleapis.com/request_count\""
    }
  }
}

resource "google_monitoring_slo" "latency" {
  service             = google_monitoring_custom_service.this.service_id
  slo_id              = "latency"
  display_name        = "reads of profiles within ${local.promised.latency_ms} ms"
  goal                = local.promised.latency
  rolling_period_days = 28

  request_based_sli {
    distribution_cut {
      distribution_filter = "${local.reads} AND metric.type=\"run.googleapis.com/request_latencies\""
      range {
        max = local.promised.latency_ms
      }
    }
  }
}

# Not the log metric lag: Monitoring would refuse an objective on it right after it was
# created, and logs.tf excludes the lines of quick messages from it. A minute is good if
# the mean age of the oldest message in it is within the limit.
resource "google_monitoring_slo" "freshness" {
  service             = google_monitoring_custom_service.this.service_id
  slo_id              = "freshness"
  display_name        = "minutes in which no event waits longer than ${local.promised.fresh_seconds} s"
  goal                = local.promised.freshness
  rolling_period_days = 28

  windows_based_sli {
    window_period = "60s"
    metric_mean_in_range {
      time_series = "resource.type=\"pubsub_subscription\" AND ${local.events_subscriptions} AND metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      range {
        max = local.promised.fresh_seconds
      }
    }
  }
}

resource "google_monitoring_alert_policy" "burning" {
  for_each = local.burning

  display_name          = "${var.name_prefix}: ${each.value.title}"
  combiner              = "AND"
  severity              = each.value.severity
  notification_channels = local.channels
  user_labels           = var.labels

  dynamic "conditions" {
    for_each = each.value.windows

    content {
      display_name = "${each.value.title}: the last ${conditions.value}"

      condition_threshold {
        filter          = "select_slo_burn_rate(\"${each.value.slo}\", \"${conditions.value}\")"
        comparison      = "COMPARISON_GT"
        threshold_value = each.value.rate
        duration        = "0s"

        trigger {
          count = 1
        }
      }
    }
  }

  # Without it, one failure among few requests at night would open the alert.
  conditions {
    display_name = "${each.value.title}: enough requests in the last ${each.value.windows[0]}"

    condition_threshold {
      filter          = each.value.count
      comparison      = "COMPARISON_GT"
      threshold_value = local.promised.least_requests
      duration        = "0s"

      aggregations {
        alignment_period     = each.value.windows[0]
        per_series_aligner   = "ALIGN_DELTA"
        cross_series_reducer = "REDUCE_SUM"
      }

      trigger {
        count = 1
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Runbook: ${each.value.runbook}"
  }

  alert_strategy {
    auto_close = "86400s"
  }
}

# By the engine's own metric: it leaves out reads that compute a profile, the network and the
# start of an instance. It is a log metric, on which Monitoring refuses an objective right after
# it was created, so the burn rate is computed here.
resource "google_monitoring_alert_policy" "stored" {
  for_each = local.burn_rates

  display_name          = "${var.name_prefix}: the stored objective is missed in ${each.value.left}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = local.channels
  user_labels           = var.labels

  conditions {
    display_name = "reads of stored profiles: the last ${each.value.long} and ${each.value.short}"

    condition_prometheus_query_language {
      query = join(" and ", concat(
        [for share in local.slow_reads[each.key] : "(${share})"],
        ["(${local.metrics["stored_reads"].every} * sum(increase(${local.promql["stored_reads"]}_count{${local.read_lines}}[${each.value.long}])) > ${local.promised.least_requests})"],
      ))
      duration                  = "0s"
      evaluation_interval       = "60s"
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Runbook: Stored profiles take longer than ${local.promised.stored_ms} ms so often that the error budget of 28 days is gone in ${each.value.left}. A stored profile is one row of Bigtable and no computation: look at the chart of Bigtable's CPU, also of the hottest node, and at the CPU of profiles. If a node is hot, raise the number of nodes; if profiles is short of CPU, lower its concurrency or raise max_instances. If neither is loaded, a region is far from its cluster, or instances start often: raise min_instances."
  }

  alert_strategy {
    auto_close = "86400s"
  }

  depends_on = [google_logging_metric.this]
}
