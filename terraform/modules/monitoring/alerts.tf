# Each policy has one condition, and its documentation says what to do. Cloud
# Monitoring refuses a policy on a log metric for up to ten minutes after the metric
# was created. So the lag is queried by PromQL, which is not validated, and rare log
# lines are matched directly.

locals {
  # The second half of the runbooks on damaged data.
  repaired = "Keep the log line: its `error` says what is damaged. If lines come for many users, the cause is not one row: check whether an older release runs beside a newer one (deploy one release to all functions), and whether tables were restored or changed by hand. Then compare the app's profiles with the log, `go run ./scripts/affinity audit --sample 1000` with ${local.as_admin}."

  channels = [for c in google_monitoring_notification_channel.email : c.id]

  # How to reach the engine and get a key, for every runbook that calls it.
  as_admin = "`--url https://HOST --app APP --key KEY`, where KEY is what `go run ./scripts/affinity app key add APP --acl admin,recommendation --project PROJECT --database ${var.firestore_database} --keys-database ${var.keys_database} --instance ${var.bigtable_instances[0]}` prints; remove it afterwards: `go run ./scripts/affinity app key list APP --project PROJECT --database ${var.firestore_database} --keys-database ${var.keys_database} --instance ${var.bigtable_instances[0]}` shows its HASH for `go run ./scripts/affinity app key remove APP HASH --project PROJECT --database ${var.firestore_database} --keys-database ${var.keys_database} --instance ${var.bigtable_instances[0]}`"

  # Alerts by metrics that Google keeps.
  measured = {
    backlog = {
      title    = "events wait to be applied"
      severity = "ERROR"
      filter   = "resource.type=\"pubsub_subscription\" AND ${local.events_subscriptions} AND metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      of       = null
      above    = var.thresholds.oldest_message_seconds
      period   = "60s"
      duration = "300s"
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_MAX"
      by       = ["resource.label.subscription_id"]
      runbook  = "The alert names the subscription; one of a dedicated customer has that customer's process. Check whether process answers 5xx (its log: \"request failed\"), whether it is at its maximum of instances, and whether Bigtable's CPU is at its target. Fix what fails, or raise max_instances of process or the number of nodes. Waiting events are kept for seven days. But process gives up a message after 20 failures, which takes about a quarter of an hour if it fails at once. If process answers 5xx and you cannot fix that within ten minutes, run `gcloud pubsub subscriptions modify-push-config SUBSCRIPTION --push-endpoint='' --project PROJECT` and apply with `paused = true` as functions/docs/operate/failover.md says, or replay the dead letters afterwards."
    }
    dead_letters = {
      title    = "dead letters wait for a replay"
      severity = "ERROR"
      filter   = "resource.type=\"pubsub_subscription\" AND ${local.dead_letter_subscriptions} AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      of       = null
      above    = var.thresholds.dead_letters
      period   = "60s"
      duration = "0s"
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_MAX"
      by       = ["resource.label.subscription_id"]
      runbook  = "Read the reason in process's line \"message went to the dead-letter topic\", or with `go run ./scripts/affinity replay --project PROJECT --dry-run`. Of a data region, such as us, add `--dead-letter-subscription events-dead-letter.us --topic events.us`. Fix the cause, then run `go run ./scripts/affinity replay --project PROJECT` before the subscription's retention of 31 days ends. Until then only these events are missing from profiles. `GET /1/usage` and the console's overview say how many messages of an app wait. A subscription warehouse-dead-letter has rows for analysts that BigQuery did not take; profiles do not miss them. Its attribute CloudPubSubDeadLetterSourceDeliveryErrorMessage says why: `gcloud pubsub subscriptions pull warehouse-dead-letter --limit 10 --project PROJECT`."
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
      runbook  = "Read the service's lines \"request failed\": `error` says what failed and where. 503 means that a backend failed (Bigtable, Firestore, Pub/Sub): look at its status and quota. 500 since an upgrade is a fault of the release: roll back as functions/docs/operate/upgrade.md says."
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
      runbook  = "Read the service's lines \"request failed\". Pub/Sub and Cloud Tasks retry, and give up after 20 and 100 attempts. What still fails then becomes a dead letter, or a failed job."
    }
    cpu = {
      title    = "a Bigtable cluster is near its CPU"
      severity = "WARNING"
      filter   = "${local.cluster} AND metric.type=\"bigtable.googleapis.com/cluster/cpu_load\""
      of       = null
      above    = var.thresholds.cpu_load
      period   = "300s"
      duration = "600s"
      aligner  = "ALIGN_MEAN"
      reducer  = "REDUCE_MEAN"
      by       = ["resource.label.instance", "resource.label.cluster"]
      runbook  = "Reads and writes grow slow, and then fail. The dashboard's chart of CPU by app profile says who uses it. batch: a recompute, an import or a migration; it has low priority, and may be cancelled: `go run ./scripts/affinity recompute list`, with ${local.as_admin}. serving or processing: the traffic has grown; raise max_nodes of the cluster and apply."
    }
    hottest = {
      title    = "a Bigtable node is near its CPU"
      severity = "WARNING"
      filter   = "${local.cluster} AND metric.type=\"bigtable.googleapis.com/cluster/cpu_load_hottest_node_high_granularity\""
      of       = null
      above    = var.thresholds.hottest_load
      period   = "300s"
      duration = "1800s"
      aligner  = "ALIGN_MEAN"
      reducer  = "REDUCE_MAX"
      by       = ["resource.label.instance", "resource.label.cluster"]
      runbook  = "One node works much more than the others: rows that lie together are asked for very often. More nodes help only once Bigtable has split them. Key Visualizer in the console shows the keys, which begin with the app's id: `go run ./scripts/affinity app top --project PROJECT --database ${var.firestore_database} --keys-database ${var.keys_database} --instance ${var.bigtable_instances[0]} --instance ${var.bigtable_instances[0]}` names the apps that use the most, and its limits bound one: `go run ./scripts/affinity app limits APP --project PROJECT --database ${var.firestore_database} --keys-database ${var.keys_database} --instance ${var.bigtable_instances[0]}`."
    }
    storage = {
      title    = "a Bigtable cluster is nearly full"
      severity = "ERROR"
      filter   = "${local.cluster} AND metric.type=\"bigtable.googleapis.com/cluster/storage_utilization\""
      of       = null
      above    = var.thresholds.storage_utilization
      period   = "300s"
      duration = "600s"
      aligner  = "ALIGN_MEAN"
      reducer  = "REDUCE_MAX"
      by       = ["resource.label.instance", "resource.label.cluster"]
      runbook  = "Bigtable refuses writes when the disks of the nodes are full. Raise max_nodes of the cluster and apply: each node brings 5 TB. Then see whose data it is, `go run ./scripts/affinity app top --project PROJECT --database ${var.firestore_database} --keys-database ${var.keys_database} --instance ${var.bigtable_instances[0]} --instance ${var.bigtable_instances[0]}`, and whether a shorter retention does."
    }
    replication = {
      title    = "a replica lags behind"
      severity = "WARNING"
      filter   = "resource.type=\"bigtable_table\" AND ${local.bigtable_instances} AND metric.type=\"bigtable.googleapis.com/replication/max_delay\""
      of       = null
      above    = var.thresholds.replication_seconds
      period   = "60s"
      duration = "300s"
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_MAX"
      by       = ["resource.label.table"]
      runbook  = "Reads that the replica serves lack what was written since, also deletions: the delay adds to the time until an event is in a profile. Reads with consistency=strong are not affected. Look at the CPU of the replica's cluster: it needs as many nodes for the writes as the primary has. A failover to it loses what it lacks, see functions/docs/operate/failover.md."
    }
    # The worker's own attempts at a shard take less than half an hour.
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
      runbook  = "A few tasks fail at every attempt, such as the deletion of a user, or the night of an app, which starts its nightly jobs. Read worker's lines \"request failed\", whose `error` says what fails, and look at the oldest tasks of the queues ${join(", ", var.queues)}: `gcloud tasks list --queue QUEUE --location REGION --project PROJECT`. Fix the cause: Cloud Tasks retries by itself, up to 100 times, which takes about eight hours."
    }
  }

  # Filters for the requests of groups of functions.
  requests_of = { for whose, services in { public = local.public, private = local.private, worker = sort(var.services["worker"]) } : whose =>
    "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(", ", [for s in services : "\"${s}\""])}) AND metric.type=\"run.googleapis.com/request_count\""
  }

  # Alerts that open at the first matching log line.
  matched = {
    dead_letter = {
      title    = "accepted events of an app do not count"
      severity = "ERROR"
      filter   = local.metrics["dead_letters"].filter
      labels   = { app = "EXTRACT(jsonPayload.app)" }
      runbook  = "Process gave up a message of accepted events of the app: the line's `error` says why. `GET /1/usage` of the app and the console's overview say how many wait. Fix the cause, then replay them as the alert \"dead letters wait for a replay\" says."
    }
    job_failed = {
      title    = "a job failed"
      severity = "ERROR"
      filter   = local.metrics["jobs_failed"].filter
      labels   = { app = "EXTRACT(jsonPayload.app)" }
      runbook  = "The line's `reason` and the lines \"... of a shard failed\" before it say why. Fix the cause, then start the job again: `go run ./scripts/affinity recompute start`, `go run ./scripts/affinity reenrich`, `go run ./scripts/affinity crowd build`, or the step that `go run ./scripts/affinity schema status` names, each with ${local.as_admin}. Until then reads are right but slower, because they compute profiles of an older strategy themselves. Without a build of crowd statistics, rankings use those of before. A failed build of segments leaves the parts of before, or no answers after a new strategy: it runs again at night. A failed repair of date rows leaves objects out of feeds: it runs again at night, or when the feed is set again, `go run ./scripts/affinity feed set`. After a failed deletion of an app run it again, `go run ./scripts/affinity app delete APP --project PROJECT --database ${var.firestore_database} --keys-database ${var.keys_database} --instance ${var.bigtable_instances[0]} --queue QUEUE`, where `terraform output -raw tasks_queue` prints QUEUE."
    }
    audit = {
      title    = "an audit found a difference"
      severity = "ERROR"
      filter   = local.metrics["audit_differences"].filter
      labels   = { for l in ["app", "which", "what"] : l => "EXTRACT(jsonPayload.${l})" }
      runbook  = "A profile differs from what its events give. Keep the log line: it is needed to find the fault. Look at the user of the line with `go run ./scripts/affinity explain USER`, estimate how many users differ with `go run ./scripts/affinity audit --sample 1000`, and compute all profiles again with `go run ./scripts/affinity recompute start`, each with ${local.as_admin}."
    }
    task_dropped = {
      title    = "the worker dropped a task"
      severity = "ERROR"
      filter   = local.metrics["tasks_dropped"].filter
      labels   = { task = "EXTRACT(jsonPayload.task)" }
      runbook  = "The line's `error` says why the worker can never run the task. Usually a rollback or an upgrade changed the form of tasks. The worker does not retry it. Deploy the release that knows the form, then have the deletion sent again, or find with `go run ./scripts/affinity recompute list` the job that makes no progress and start it again with `go run ./scripts/affinity recompute start`, each with ${local.as_admin}."
    }
    denied = {
      title    = "many requests have wrong credentials"
      severity = "WARNING"
      filter   = "${local.metrics["requests_denied"].filter} AND jsonPayload.requests>=${var.thresholds.denied_per_minute}"
      labels   = { app = "EXTRACT(jsonPayload.app)", status = "EXTRACT(jsonPayload.status)" }
      runbook  = "The line counts the requests of one minute and one instance that name an app with credentials that permit nothing. 401: a stranger guesses keys, or a key was removed that a page still uses: `go run ./scripts/affinity app key list APP --project PROJECT --database ${var.firestore_database} --keys-database ${var.keys_database} --instance ${var.bigtable_instances[0]}` shows the keys. 403: a key is used for more than it may do, or from a page or host that is not its own; the line's `reason` says which. If the app's owner knows of no change, find the addresses in the load balancer's metrics by country and in Cloud Armor, and block them with a rule of the security policy. Guessing finds no key: keys have 32 random characters."
    }
    manifest_damaged = {
      title    = "a manifest is damaged"
      severity = "ERROR"
      filter   = local.metrics["manifests_damaged"].filter
      labels   = { app = "EXTRACT(jsonPayload.app)" }
      runbook  = "The list of a user's packed events does not parse. Profiles stay right, because the engine reads the event log in its place, and the next refresh of the user replaces the list. ${local.repaired}"
    }
    block_damaged = {
      title    = "a block of events is damaged"
      severity = "ERROR"
      filter   = local.metrics["blocks_damaged"].filter
      labels   = { app = "EXTRACT(jsonPayload.app)" }
      runbook  = "A block of a user's packed events is lost or does not parse. Profiles stay right, because the engine reads the event log in its place, and the next refresh of the user packs these events again. ${local.repaired}"
    }
    repair_failed = {
      title    = "a damaged block stays"
      severity = "WARNING"
      filter   = local.metrics["repairs_failed"].filter
      labels   = { app = "EXTRACT(jsonPayload.app)" }
      runbook  = "The engine found a damaged block or manifest and could not remove it: the line's `error` says why. Usually Bigtable refused or delayed the write: look at its status and its CPU. The next refresh of the user tries again. Profiles stay right, but reads of this user are slower until then."
    }
    # If a nightly round does not start, the engine logs nothing. Cloud Scheduler logs
    # each failed attempt, even if a later attempt succeeds.
    nightly = {
      title    = "a nightly round did not begin"
      severity = "ERROR"
      filter   = "resource.type=\"cloud_scheduler_job\" AND resource.labels.job_id=~\"^affinity-(nightly|full)\" AND severity>=ERROR"
      labels   = { job = "EXTRACT(resource.labels.job_id)" }
      runbook  = "Check whether a later attempt succeeded: worker's line \"nightly round started\" after this one's time. If none did, read worker's lines \"request failed\" and the alert's line: 404 means that the app of a customer's schedule does not exist, 403 that a grant is missing. Fix the cause, then run `gcloud scheduler jobs run JOB --location REGION --project PROJECT` with the line's JOB. Starting a round twice does no harm: it creates the tasks that are missing. A round that began gives each app a task; if that fails, the alert that the worker fails again and again opens. Until then profiles stay right, but reads compute what the round would have computed."
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

  # An alert without new data closes after a day.
  alert_strategy {
    auto_close = "86400s"
  }
}

# What a client waits for, who reads from a replica: the lag ends when the primary cluster has
# the profile, and then the replica gets it. An instance of one cluster has no such delay.
locals {
  replication_delay = "bigtable_googleapis_com:replication_max_delay{monitored_resource=\"bigtable_table\",instance=~\"${join("|", var.bigtable_instances)}\",table=~\"users([.].*)?\"}"
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
      query                     = "histogram_quantile(0.99, sum by (le, app) (rate(${local.promql["lag"]}_bucket{monitored_resource=\"cloud_run_revision\"}[5m]))) + on () group_left () (1000 * max(${local.replication_delay}) or vector(0)) > ${var.thresholds.lag_ms}"
      duration                  = "300s"
      evaluation_interval       = "60s"
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Runbook: The lag is that from receipt to the primary cluster, and the delay of the replicas of the table users. If the chart of replicas shows the delay, follow the alert on replicas. If the backlog grows too, follow the alert on the backlog. If not, single messages are slow: look at Bigtable's latency, and at process's lines \"request failed\" for retries. Events of one busy user wait for each other."
  }

  alert_strategy {
    auto_close = "86400s"
  }

  depends_on = [google_logging_metric.this]
}

# One failed fold is tried again and loses nothing, so the alert waits for an hour of
# failures.
resource "google_monitoring_alert_policy" "folds" {
  display_name          = "${var.name_prefix}: histories are not folded"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = local.channels
  user_labels           = var.labels

  conditions {
    display_name = "failed folds of an app"

    condition_prometheus_query_language {
      query                     = "sum by (app) (increase(${local.promql["folds_failed"]}{monitored_resource=\"cloud_run_revision\"}[10m])) > ${var.thresholds.failed_folds}"
      duration                  = "3600s"
      evaluation_interval       = "60s"
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Runbook: The engine cannot pack the events of users into blocks: the `error` of the lines \"history is not folded\" says why. Profiles stay right, but recomputes and reads of these users are slower and cost more. Look at Bigtable's status, CPU and latency. The nightly round folds what is left; if the lines go on after it with the same users, keep the lines and compare these profiles with the log, `go run ./scripts/affinity audit --sample 1000` with ${local.as_admin}."
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
