# Each policy has one condition and says in its documentation what to do. None
# waits for a metric of lines that has had no line yet: to make a policy about
# such a metric fails for up to ten minutes after the metric was made, so that one
# is asked by PromQL, unchecked, and rare lines are matched as they come.

locals {
  channels = [for c in google_monitoring_notification_channel.email : c.id]

  # Said by every runbook that asks the engine: where it is, and how to come by a key.
  as_admin = "`--url https://HOST --app APP --key KEY`, where KEY is what `go run ./scripts/affinity app key add APP --acl admin,recommendation --project PROJECT --database ${var.firestore_database}` prints; remove it afterwards: `go run ./scripts/affinity app key list APP --project PROJECT --database ${var.firestore_database}` shows its HASH for `go run ./scripts/affinity app key remove APP HASH --project PROJECT --database ${var.firestore_database}`"

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
      runbook  = "Look whether process answers 5xx (its log: \"request failed\") or is at its maximum of instances, and whether Bigtable's CPU is at its target: mend what fails, raise max_instances of process or the nodes. What waits is applied when it can be, for seven days. But process gives up a message that it fails 20 times, which is about a quarter of an hour where it fails at once: where it answers 5xx and that is not mended in ten minutes, run `gcloud pubsub subscriptions modify-push-config ${var.events_subscription} --push-endpoint='' --project PROJECT` and apply with `paused = true` as terraform/FAILOVER.md says, or replay the dead letters afterwards."
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
      runbook  = "Read the reason in process's line \"message went to the dead-letter topic\", or with `go run ./scripts/affinity replay --project PROJECT --dry-run`; mend it, then `go run ./scripts/affinity replay --project PROJECT` before the subscription's retention is over. Until then these events are missing from profiles, and nothing else is."
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
    # Half an hour is longer than the attempts that the worker gives a shard.
    persists = {
      title    = "the worker fails again and again"
      severity = "ERROR"
      filter   = "${local.requests_of.worker} AND metric.labels.response_code_class=\"5xx\""
      of       = null
      above    = 0
      period   = "600s"
      duration = "1800s"
      aligner  = "ALIGN_RATE"
      reducer  = "REDUCE_SUM"
      by       = []
      runbook  = "Few tasks fail, and none of them comes through: a deletion of a user that is not carried out, or a night that is not begun. Read worker's lines \"request failed\", whose `error` says what fails, and look at the queue's oldest tasks: `gcloud tasks list --queue ${var.queue} --location REGION --project PROJECT`. Mend it: Cloud Tasks comes again by itself, up to 100 times, which is about eight hours."
    }
  }

  # What filters by functions have in common.
  requests_of = { for whose, services in { public = local.public, private = local.private, worker = sort(var.services["worker"]) } : whose =>
    "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(", ", [for s in services : "\"${s}\""])}) AND metric.type=\"run.googleapis.com/request_count\""
  }

  # Alerts by lines of which one is too many: those of a metric, or of a filter.
  matched = {
    job_failed = {
      title    = "a recompute, re-enrichment or move failed"
      severity = "ERROR"
      filter   = local.metrics["jobs_failed"].filter
      labels   = { app = "EXTRACT(jsonPayload.app)" }
      runbook  = "The line's `reason` and the lines \"... of a shard failed\" before it say why; mend it, then start it anew: `go run ./scripts/affinity recompute start`, `go run ./scripts/affinity reenrich`, or the step that `go run ./scripts/affinity schema status` names, each with ${local.as_admin}. Until then reads compute profiles of an older strategy themselves and are right, but slower."
    }
    audit = {
      title    = "an audit found a difference"
      severity = "ERROR"
      filter   = local.metrics["audit_differences"].filter
      labels   = { for l in ["app", "which", "what"] : l => "EXTRACT(jsonPayload.${l})" }
      runbook  = "A profile is not what its events say. Keep the line, it is how the fault will be found. Look at the user of the line with `go run ./scripts/affinity explain USER`, see how many it concerns with `go run ./scripts/affinity audit --sample 1000`, and make them anew with `go run ./scripts/affinity recompute start`, each with ${local.as_admin}."
    }
    task_dropped = {
      title    = "the worker dropped a task"
      severity = "ERROR"
      filter   = local.metrics["tasks_dropped"].filter
      labels   = { task = "EXTRACT(jsonPayload.task)" }
      runbook  = "The line's `error` says why the task could never be carried out: mostly that a version was rolled back to, or forward from, one that orders tasks of another form. It is not tried again: deploy the version that knows the form, then have the deletion sent once more, or see with `go run ./scripts/affinity recompute list` which job stands still and start it anew with `go run ./scripts/affinity recompute start`, each with ${local.as_admin}."
    }
    # A night that did not begin leaves no line of the engine's. Scheduler logs each
    # attempt that failed, also one that came through when tried again.
    nightly = {
      title    = "a nightly round did not begin"
      severity = "ERROR"
      filter   = "resource.type=\"cloud_scheduler_job\" AND resource.labels.job_id=~\"^affinity-nightly\" AND severity>=ERROR"
      labels   = { job = "EXTRACT(resource.labels.job_id)" }
      runbook  = "See whether a later attempt came through: worker's line \"nightly round started\" after this one's time. If none did, read worker's lines \"request failed\" and the alert's line: 404 is an app that a customer's schedule names and that is not there, 403 is a grant that is missing. Mend it, then `gcloud scheduler jobs run JOB --location REGION --project PROJECT` with the line's JOB: a round begun twice starts nothing twice. Until then profiles are as right as they were, but reads compute what the night would have."
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
      filter           = each.value.filter
      label_extractors = each.value.labels
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
