output "dashboard" {
  description = "ID of the dashboard."
  value       = google_monitoring_dashboard.this.id
}

output "log_metrics" {
  description = "Log metrics, by their names in metrics.json."
  value       = { for name, m in google_logging_metric.this : name => "logging.googleapis.com/user/${m.name}" }
}

output "budget" {
  description = "Name of the budget; null without one."
  value       = one(google_billing_budget.this[*].display_name)
}

locals {
  policies = concat(values(google_monitoring_alert_policy.measured), values(google_monitoring_alert_policy.matched), values(google_monitoring_alert_policy.burning), values(google_monitoring_alert_policy.stored), values(google_monitoring_alert_policy.unreachable), [google_monitoring_alert_policy.lag, google_monitoring_alert_policy.folds])
}

output "alerts" {
  description = "Runbook of each alert, by the alert's name."
  value       = { for p in local.policies : p.display_name => one(p.documentation).content }
}

output "conditions" {
  description = "How many conditions the alerts have, each of which Google may charge for: one more for each host."
  value       = sum([for p in local.policies : length(p.conditions)])
}

output "objectives" {
  description = "Goal of each objective over 28 days, and the limit of reads of stored profiles."
  value = {
    availability = google_monitoring_slo.availability.goal
    stored       = local.promised.stored
    stored_ms    = local.promised.stored_ms
    latency      = google_monitoring_slo.latency.goal
    freshness    = google_monitoring_slo.freshness.goal
  }
}

output "checked_hosts" {
  description = "Hosts that Google calls: those of the API every minute, that of the console every five."
  value       = toset([for c in google_monitoring_uptime_check_config.edge : one(c.monitored_resource).labels.host])
}

output "thresholds" {
  description = "When alerts open."
  value       = var.thresholds
}
