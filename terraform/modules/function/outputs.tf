output "name" {
  description = "The function, and its Cloud Run service."
  value       = google_cloudfunctions2_function.this.name
}

output "uri" {
  description = "The run.app URL of the service, by which Pub/Sub, Cloud Tasks and Cloud Scheduler reach it, and the audience of their tokens."
  value       = google_cloudfunctions2_function.this.service_config[0].uri
}

output "service_account_email" {
  description = "The account that the function runs as."
  value       = google_service_account.this.email
}

output "service_account_member" {
  description = "The same as a member of a policy."
  value       = google_service_account.this.member
}

output "ingress" {
  description = "From where the function can be reached."
  value       = google_cloudfunctions2_function.this.service_config[0].ingress_settings
}

output "environment" {
  description = "The variables that the function is given."
  value       = coalesce(google_cloudfunctions2_function.this.service_config[0].environment_variables, tomap({}))
}

output "invokers" {
  description = "Who may call the function."
  value       = sort([for m in google_cloud_run_service_iam_member.invoker : m.member])
}
