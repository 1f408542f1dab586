# Each policy has one condition and says in its documentation what to do. None
# waits for a metric of lines that has had no line yet: to make a policy about
# such a metric fails for up to ten minutes after the metric was made, so that one
# is asked by PromQL, unchecked, and rare lines are matched as they come.

locals {
  channels = [for c in google_monitoring_notification_channel.email : c.id]

  # Alerts by metrics that Google keeps.
  measured = {
    backlog = {
      title    = "events wait to be applied"
      severity = "ERROR"
      filter   = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=\"${var.events_subscription}\" AND metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      of       = null
      above    = var.thresholds.oldest_message_seconds
      period   = "60s"
      duration = "300s"
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_MAX"
      by       = []
      runbook  = "Look whether process answers 5xx (its log: \"request failed\") or is at its maximum of instances, and whether Bigtable's CPU is at its target: mend what fails, raise max_instances of process or the nodes. What waits is applied when it can be, nothing is lost."
    }
    dead_letters = {
      title    = "dead letters wait for a replay"
      severity = "ERROR"
      filter   = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=\"${var.dead_letter_subscription}\" AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      of       = null
      above    = var.thresholds.dead_letters
      period   = "60s"
      duration = "0s"
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_MAX"
      by       = []
      runbook  = "Read the reason in process's line \"message went to the dead-letter topic\", or with `affinity replay --project PROJECT --dry-run`; mend it, then `affinity replay --project PROJECT` before the subscription's retention is over. Until then these events are missing from profiles, and nothing else is."
    }
    errors = {
      title    = "a public function answers 5xx"
      severity = "CRITICAL"
      filter   = "${local.requests_of.public} AND metric.labels.response_code_class=\"5xx\""
      of       = local.requests_of.public
      above    = var.thresholds.error_ratio
      period   = "300s"
      duration = "0s"
      aligner  = "ALIGN_RATE"
      reducer  = "REDUCE_SUM"
      by       = ["resource.label.service_name"]
      runbook  = "Read the service's lines \"request failed\": `error` says what failed and where. 503 is a backend (Bigtable, Firestore, Pub/Sub): look at its status and quota. 500 since an upgrade is ours: roll back as terraform/README.md says."
    }
    failures = {
      title    = "a private function keeps failing"
      severity = "WARNING"
      filter   = "${local.requests_of.private} AND metric.labels.response_code_class=\"5xx\""
      of       = null
      above    = var.thresholds.failures_per_minute / 60
      period   = "300s"
      duration = "600s"
      aligner  = "ALIGN_RATE"
      reducer  = "REDUCE_SUM"
      by       = ["resource.label.service_name"]
      runbook  = "Read the service's lines \"request failed\". Pub/Sub and Cloud Tasks come again, and give up after 20 and 100 attempts: what is not mended by then becomes dead letters, or a job that fails."
    }
  }

  # What filters by functions have in common.
  requests_of = { for whose, services in { public = local.public, private = local.private } : whose =>
    "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(", ", [for s in services : "\"${s}\""])}) AND metric.type=\"run.googleapis.com/request_count\""
  }

  # Alerts by lines of which one is too many.
  matched = {
    job_failed = {
      title    = "a recompute, re-enrichment or move failed"
      severity = "ERROR"
      metric   = "jobs_failed"
      labels   = ["app"]
      runbook  = "The line's `reason` and the lines \"... of a shard failed\" before it say why; mend it, then start it anew: `affinity recompute start`, `affinity reenrich` or the step that `affinity schema status` names. Until then reads compute profiles of an older strategy themselves and are right, but slower."
    }
    audit = {
      title    = "an audit found a difference"
      severity = "ERROR"
      metric   = "audit_differences"
      labels   = ["app", "which", "what"]
      runbook  = "A profile is not what its events say. Look at the user of the line with `affinity explain USER`, run `affinity audit` for how many it concerns, and `affinity recompute start` to make them anew; keep the line, it is how the fault will be found."
    }
  }
}

resource "google_monitoring_alert_policy" "measured" {
  for_each = local.measured

  display_name          = "${var.name_prefix}: ${each.value.title}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = local.channels
  user_labels           = var.labels

  conditions {
    display_name = each.value.title

    condition_threshold {
      filter             = each.value.filter
      denominator_filter = each.value.of
      comparison         = "COMPARISON_GT"
      threshold_value    = each.value.above
      duration           = each.value.duration

      aggregations {
        alignment_period     = each.value.period
        per_series_aligner   = each.value.aligner
        cross_series_reducer = each.value.reducer
        group_by_fields      = each.value.by
      }

      dynamic "denominator_aggregations" {
        for_each = each.value.of[*]
        content {
          alignment_period     = each.value.period
          per_series_aligner   = each.value.aligner
          cross_series_reducer = each.value.reducer
          group_by_fields      = each.value.by
        }
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

  # One that has had no data since is over.
  alert_strategy {
    auto_close = "86400s"
  }
}

resource "google_monitoring_alert_policy" "lag" {
  display_name          = "${var.name_prefix}: profiles lag behind events"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = local.channels
  user_labels           = var.labels

  conditions {
    display_name = "lag of an app"

    condition_prometheus_query_language {
      query                     = "histogram_quantile(0.99, sum by (le, app) (rate(${local.promql["lag"]}_bucket{monitored_resource=\"cloud_run_revision\"}[5m]))) > ${var.thresholds.lag_ms}"
      duration                  = "300s"
      evaluation_interval       = "60s"
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Runbook: Where the backlog grows too, do what its alert says. Where it does not, messages are slow one by one: look at Bigtable's latency and at process's lines \"request failed\" for what is tried again; a single busy user's events wait for each other."
  }

  alert_strategy {
    auto_close = "86400s"
  }

  depends_on = [google_logging_metric.this]
}

resource "google_monitoring_alert_policy" "matched" {
  for_each = local.matched

  display_name          = "${var.name_prefix}: ${each.value.title}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = local.channels
  user_labels           = var.labels

  conditions {
    display_name = each.value.title

    condition_matched_log {
      filter           = local.metrics[each.value.metric].filter
      label_extractors = { for l in each.value.labels : l => "EXTRACT(jsonPayload.${l})" }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Runbook: ${each.value.runbook}"
  }

  alert_strategy {
    auto_close = "86400s"

    notification_rate_limit {
      period = "${var.thresholds.renotify_seconds}s"
    }
  }
}
