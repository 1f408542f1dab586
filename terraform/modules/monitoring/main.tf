locals {
  lines = jsondecode(file("${path.module}/metrics.json"))

  services = sort(distinct(flatten(values(var.services))))
  public   = sort(distinct(flatten([for f, s in var.services : s if !contains(var.private_functions, f)])))
  private  = sort(distinct(flatten([for f, s in var.services : s if contains(var.private_functions, f)])))

  # Filters for several subscriptions, queues and instances.
  events_subscriptions      = "resource.labels.subscription_id=one_of(${join(", ", [for s in var.events_subscriptions : "\"${s}\""])})"
  dead_letter_subscriptions = "resource.labels.subscription_id=one_of(${join(", ", [for s in var.dead_letter_subscriptions : "\"${s}\""])})"
  bigtable_instances        = "resource.labels.instance=one_of(${join(", ", [for i in var.bigtable_instances : "\"${i}\""])})"
  queues                    = "resource.labels.queue_id=one_of(${join(", ", [for q in var.queues : "\"${q}\""])})"

  # A metric's filter: the message of its lines, with the name of each job in place of
  # <job>, and the required values of fields.
  metrics = { for m in local.lines.metrics : m.name => {
    help   = m.help
    value  = try(m.value, null)
    unit   = try(m.unit, "1")
    bounds = try(m.bounds, [])
    every  = try(m.every, 1)
    labels = m.labels
    of_job = strcontains(m.message, "<job>")
    filter = join(" AND ", concat(
      [
        "resource.type=\"cloud_run_revision\"",
        "resource.labels.service_name=(${join(" OR ", [for s in local.services : "\"${s}\""])})",
        "jsonPayload.message=(${join(" OR ", distinct([for job in local.lines.jobs : "\"${replace(m.message, "<job>", job)}\""]))})",
      ],
      [for field, value in try(m.where, {}) : "jsonPayload.${field}=\"${value}\""],
    ))
  } }

  # The metrics' names in PromQL.
  promql = { for name in keys(local.metrics) : name => "logging_googleapis_com:user_${replace(var.name_prefix, "-", "_")}_${name}" }
}

resource "google_logging_metric" "this" {
  for_each = local.metrics

  name        = "${var.name_prefix}/${each.key}"
  description = each.value.help
  filter      = each.value.filter

  value_extractor = each.value.value == null ? null : "EXTRACT(jsonPayload.${each.value.value})"
  label_extractors = merge(
    { for l in each.value.labels : l => "EXTRACT(jsonPayload.${l})" },
    each.value.of_job ? { job = "REGEXP_EXTRACT(jsonPayload.message, \"^([a-z]+) \")" } : {},
  )

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = each.value.value == null ? "INT64" : "DISTRIBUTION"
    unit        = each.value.unit

    dynamic "labels" {
      for_each = concat(each.value.labels, each.value.of_job ? ["job"] : [])
      content {
        key        = labels.value
        value_type = "STRING"
      }
    }
  }

  dynamic "bucket_options" {
    for_each = each.value.value[*]
    content {
      # Each bound is twice the one before, from 1 to 2^21, which is half an hour in
      # milliseconds. An objective needs a bound at its limit.
      dynamic "exponential_buckets" {
        for_each = length(each.value.bounds) == 0 ? [2] : []
        content {
          num_finite_buckets = 21
          growth_factor      = exponential_buckets.value
          scale              = 1
        }
      }

      dynamic "explicit_buckets" {
        for_each = length(each.value.bounds) == 0 ? [] : [each.value.bounds]
        content {
          bounds = explicit_buckets.value
        }
      }
    }
  }
}

resource "google_monitoring_notification_channel" "email" {
  for_each = toset(var.alert_email[*])

  display_name = "${var.name_prefix}: ${each.value}"
  type         = "email"
  labels       = { email_address = each.value }
  user_labels  = var.labels
}
