output "dashboard" {
  description = "The id of the dashboard."
  value       = google_monitoring_dashboard.this.id
}

output "log_metrics" {
  description = "The metrics that are counted from log lines, by their names in metrics.json."
  value       = { for name, m in google_logging_metric.this : name => "logging.googleapis.com/user/${m.name}" }
}

output "budget" {
  description = "The name of the budget; null without one."
  value       = one(google_billing_budget.this[*].display_name)
}

output "alerts" {
  description = "The alerts, and what to do about each."
  value = { for p in concat(values(google_monitoring_alert_policy.measured), values(google_monitoring_alert_policy.matched), [google_monitoring_alert_policy.lag]) :
    p.display_name => one(p.documentation).content
  }
}
