output "name" {
  description = "Name of the function and of its Cloud Run service."
  value       = google_cloudfunctions2_function.this.name
}

output "uri" {
  description = "run.app URL of the service. Pub/Sub, Cloud Tasks and Cloud Scheduler call it, and their tokens have it as audience."
  value       = google_cloudfunctions2_function.this.service_config[0].uri
}

output "service_account_email" {
  description = "Email of the account that the function runs as."
  value       = local.account

  # A function in another region starts as this account, and needs its secrets.
  depends_on = [google_secret_manager_secret_iam_member.reader]
}

output "service_account_member" {
  description = "The account that the function runs as, as a member of a policy."
  value       = var.service_account == null ? google_service_account.this[0].member : var.service_account.member

  # A function in another region starts as this account, and needs its secrets.
  depends_on = [google_secret_manager_secret_iam_member.reader]
}

output "ingress" {
  description = "Sources of traffic that the function accepts."
  value       = google_cloudfunctions2_function.this.service_config[0].ingress_settings
}

output "environment" {
  description = "Environment variables of the function."
  value       = coalesce(google_cloudfunctions2_function.this.service_config[0].environment_variables, tomap({}))
}

output "invokers" {
  description = "Members that may call the function."
  value       = sort([for m in google_cloud_run_service_iam_member.invoker : m.member])
}

output "secrets" {
  description = "The secrets that the function reads, by variable."
  value       = { for s in google_cloudfunctions2_function.this.service_config[0].secret_environment_variables : s.key => s.secret }
}
