# Google calls each host from several regions, as a client does: through DNS, the
# certificate and Cloud Armor, which no metric of a function sees. /docs needs no key and
# has 33 KB; /openapi.json has 950 KB, and checks would load 250 GB of it a month.
#
# The console has no warm instance. Its checks are rarer, and no one is woken: people wait
# for it, and no shop does.

locals {
  checks = merge(
    { for host in var.hosts : host => { path = "/docs", period = 60, severity = "CRITICAL" } },
    var.console_host == null ? {} : { (var.console_host) = { path = "/console/login", period = 300, severity = "WARNING" } },
  )
}

resource "google_monitoring_uptime_check_config" "edge" {
  for_each = local.checks

  display_name = "${var.name_prefix}: ${each.key}"
  timeout      = "10s"
  period       = "${each.value.period}s"
  user_labels  = var.labels

  http_check {
    path         = each.value.path
    port         = 443
    use_ssl      = true
    validate_ssl = true
  }

  monitored_resource {
    type   = "uptime_url"
    labels = { host = each.key, project_id = var.project_id }
  }
}

resource "google_monitoring_alert_policy" "unreachable" {
  for_each = local.checks

  display_name          = "${var.name_prefix}: ${each.key} is not reachable"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = local.channels
  user_labels           = var.labels

  conditions {
    display_name = "${each.key} fails from several regions"

    # The number of regions whose checks failed. One region alone may have a fault of
    # its own network.
    condition_threshold {
      filter          = "resource.type=\"uptime_url\" AND metric.type=\"monitoring.googleapis.com/uptime_check/check_passed\" AND metric.labels.check_id=\"${google_monitoring_uptime_check_config.edge[each.key].uptime_check_id}\""
      comparison      = "COMPARISON_GT"
      threshold_value = 1
      duration        = "${2 * each.value.period}s"

      aggregations {
        alignment_period     = "${2 * each.value.period}s"
        per_series_aligner   = "ALIGN_NEXT_OLDER"
        cross_series_reducer = "REDUCE_COUNT_FALSE"
        group_by_fields      = ["resource.label.host"]
      }

      trigger {
        count = 1
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Runbook: Google's checks of https://${each.key}${each.value.path} fail. Call it: `curl -sS -o /dev/null -w '%%{http_code}' https://${each.key}${each.value.path}`. No address: the DNS record is gone; `terraform output dns_records` prints it. A fault of TLS: look at the certificate with `gcloud certificate-manager certificates list --project PROJECT`; its proof of ownership must stay in DNS. 403 or 429: Cloud Armor refuses the checks. 5xx: follow the alert on public functions."
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
