# A dashboard of one page: requests and refusals, the freshness of profiles, the
# latency of reads, jobs, dead letters, and the load of Bigtable.

locals {
  # Filters for the requests of functions, for log metrics and for Bigtable's cluster.
  run_request = "resource.type=\"cloud_run_revision\" AND metric.type=\"run.googleapis.com/request_count\""
  of          = { for f, services in var.services : f => "resource.labels.service_name=one_of(${join(", ", [for s in services : "\"${s}\""])})" }
  counted     = { for name in keys(local.metrics) : name => "resource.type=\"cloud_run_revision\" AND metric.type=\"logging.googleapis.com/user/${var.name_prefix}/${name}\"" }
  cluster     = "resource.type=\"bigtable_cluster\" AND ${local.bigtable_instances}"

  # The charts in order. A line is a filter with its aligner and reducer, or a PromQL
  # query. mark draws the threshold of an alert.
  charts = concat([
    {
      title = "Ingest: requests a second, by answer"
      lines = [{ filter = "${local.run_request} AND ${local.of["ingest"]}", align = "ALIGN_RATE", reduce = "REDUCE_SUM", by = ["metric.label.response_code_class"] }]
    },
    {
      title = "Events applied a second, by app"
      lines = [{ query = "sum by (app) (rate(${local.promql["events"]}_sum{monitored_resource=\"cloud_run_revision\"}[$${__interval}]))" }]
    },
    {
      title = "Refusals: 4xx of ingest a second, by status"
      lines = [{ filter = "${local.run_request} AND ${local.of["ingest"]} AND metric.labels.response_code_class=\"4xx\"", align = "ALIGN_RATE", reduce = "REDUCE_SUM", by = ["metric.label.response_code"] }]
    },
    {
      title = "Requests with wrong credentials a second, by app"
      lines = [{ query = "sum by (app) (rate(${local.promql["requests_denied"]}_sum{monitored_resource=\"cloud_run_revision\"}[$${__interval}]))" }]
    },
    {
      title = "Valid events turned away, refusals not recorded"
      lines = [
        { filter = local.counted["events_unpublished"], align = "ALIGN_DELTA", reduce = "REDUCE_SUM", by = [], legend = "not published" },
        { filter = local.counted["refusals_unrecorded"], align = "ALIGN_DELTA", reduce = "REDUCE_SUM", by = [], legend = "refusals not written" },
      ]
    },
    {
      title = "Lag: receipt to visible, ms"
      mark  = var.thresholds.lag_ms
      lines = [for p in ["50", "95", "99"] : { filter = local.counted["lag"], align = "ALIGN_DELTA", reduce = "REDUCE_PERCENTILE_${p}", by = [], legend = "p${p}" }]
    },
    {
      title = "Oldest event not applied, s"
      mark  = var.thresholds.oldest_message_seconds
      lines = [{ filter = "resource.type=\"pubsub_subscription\" AND ${local.events_subscriptions} AND metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\"", align = "ALIGN_MAX", reduce = "REDUCE_MAX", by = ["resource.label.subscription_id"] }]
    },
    {
      title = "Read latency of profiles, ms"
      lines = [for p in ["50", "99"] : { filter = "resource.type=\"cloud_run_revision\" AND metric.type=\"run.googleapis.com/request_latencies\" AND ${local.of["profiles"]}", align = "ALIGN_DELTA", reduce = "REDUCE_PERCENTILE_${p}", by = ["resource.label.service_name"], legend = "p${p} $${resource.labels.service_name}" }]
    },
    {
      title = "Reads of stored profiles in the engine, ms"
      mark  = local.promised.stored_ms
      lines = [for p in ["50", "99"] : { filter = local.counted["stored_reads"], align = "ALIGN_DELTA", reduce = "REDUCE_PERCENTILE_${p}", by = [], legend = "p${p}" }]
    },
    {
      title = "5xx a second, by function"
      lines = [{ filter = "${local.run_request} AND resource.labels.service_name=one_of(${join(", ", [for s in local.services : "\"${s}\""])}) AND metric.labels.response_code_class=\"5xx\"", align = "ALIGN_RATE", reduce = "REDUCE_SUM", by = ["resource.label.service_name"] }]
    },
    {
      title = "Recomputes and other jobs that ended, by state"
      lines = [{ filter = local.counted["jobs_ended"], align = "ALIGN_DELTA", reduce = "REDUCE_SUM", by = ["metric.label.job", "metric.label.state"] }]
    },
    {
      title = "Tasks waiting by queue, shards failed"
      lines = [
        { filter = "resource.type=\"cloud_tasks_queue\" AND ${local.queues} AND metric.type=\"cloudtasks.googleapis.com/queue/depth\"", align = "ALIGN_MAX", reduce = "REDUCE_SUM", by = ["resource.label.queue_id"], legend = "tasks of $${resource.labels.queue_id}" },
        { filter = local.counted["shards_failed"], align = "ALIGN_DELTA", reduce = "REDUCE_SUM", by = ["metric.label.job"], legend = "shards of a $${metric.labels.job}" },
      ]
    },
    {
      title = "Dead letters: waiting, and given up"
      lines = [
        { filter = "resource.type=\"pubsub_subscription\" AND ${local.dead_letter_subscriptions} AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\"", align = "ALIGN_MAX", reduce = "REDUCE_MAX", by = [], legend = "waiting" },
        { filter = local.counted["dead_letters"], align = "ALIGN_DELTA", reduce = "REDUCE_SUM", by = [], legend = "given up" },
      ]
    },
    {
      title = "Differences that audits found, by app"
      lines = [{ filter = local.counted["audit_differences"], align = "ALIGN_DELTA", reduce = "REDUCE_SUM", by = ["metric.label.app"] }]
    },
    {
      title = "Bigtable CPU: cluster, and its hottest node"
      lines = [
        { filter = "${local.cluster} AND metric.type=\"bigtable.googleapis.com/cluster/cpu_load\"", align = "ALIGN_MEAN", reduce = "REDUCE_MEAN", by = ["resource.label.instance", "resource.label.cluster"], legend = "$${resource.labels.instance} $${resource.labels.cluster}" },
        { filter = "${local.cluster} AND metric.type=\"bigtable.googleapis.com/cluster/cpu_load_hottest_node\"", align = "ALIGN_MAX", reduce = "REDUCE_MAX", by = ["resource.label.instance", "resource.label.cluster"], legend = "hottest of $${resource.labels.instance} $${resource.labels.cluster}" },
      ]
    },
    {
      title = "Bigtable CPU by app profile"
      lines = [{ filter = "${local.cluster} AND metric.type=\"bigtable.googleapis.com/cluster/cpu_load_by_app_profile_by_method_by_table\"", align = "ALIGN_MEAN", reduce = "REDUCE_SUM", by = ["metric.label.app_profile", "resource.label.instance", "resource.label.cluster"] }]
    },
    {
      title = "How far replicas lag behind, by table"
      lines = [{ filter = "resource.type=\"bigtable_table\" AND ${local.bigtable_instances} AND metric.type=\"bigtable.googleapis.com/replication/max_delay\"", align = "ALIGN_MAX", reduce = "REDUCE_MAX", by = ["resource.label.instance", "resource.label.table"] }]
    },
    {
      title = "Requests that failed, by function and status"
      lines = [{ filter = local.counted["requests_failed"], align = "ALIGN_DELTA", reduce = "REDUCE_SUM", by = ["resource.label.service_name", "metric.label.status"] }]
    },
    ], [for policy in var.security_policy[*] : {
      title = "Requests at the edge a second, by whether they were refused"
      lines = [{ filter = "resource.type=\"network_security_policy\" AND resource.labels.policy_name=\"${policy}\" AND metric.type=\"networksecurity.googleapis.com/https/request_count\"", align = "ALIGN_RATE", reduce = "REDUCE_SUM", by = ["metric.label.blocked"] }]
  }])

  # Monitoring drops values that are 0 or empty. If the dashboard had them, every plan
  # would show a change.
  tiles = [for i, chart in local.charts : merge(
    { for at, n in { xPos = i % 2 * 24, yPos = floor(i / 2) * 16 } : at => n if n > 0 },
    {
      width  = 24
      height = 16
      widget = {
        title = chart.title
        xyChart = merge(
          { chartOptions = { mode = "COLOR" } },
          try({ thresholds = [{ value = chart.mark, label = "alert" }] }, {}),
          { dataSets = [for line in chart.lines : merge(
            { plotType = "LINE" },
            try({ legendTemplate = line.legend }, {}),
            { timeSeriesQuery = try(
              { prometheusQuery = line.query },
              { timeSeriesFilter = {
                filter = line.filter
                aggregation = merge(
                  { alignmentPeriod = "60s", perSeriesAligner = line.align, crossSeriesReducer = line.reduce },
                  length(line.by) == 0 ? {} : { groupByFields = line.by },
                )
              } },
            ) },
          )] },
        )
      }
    },
  )]
}

resource "google_monitoring_dashboard" "this" {
  dashboard_json = jsonencode({
    displayName  = var.name_prefix
    mosaicLayout = { columns = 48, tiles = local.tiles }
  })
}
