output "name" {
  description = "Name of the function's Cloud Run service."
  value       = google_cloud_run_v2_service.this.name
}

output "uri" {
  description = "run.app URL of the service. Pub/Sub, Cloud Tasks and Cloud Scheduler call it, and their tokens have it as audience."
  value       = google_cloud_run_v2_service.this.uri
}

output "image" {
  description = "The image that the newest revision runs."
  value       = google_cloud_run_v2_service.this.template[0].containers[0].image
}

output "revision" {
  description = "Name of the newest revision that is ready, for the variable traffic."
  value       = basename(google_cloud_run_v2_service.this.latest_ready_revision)
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
  value       = google_cloud_run_v2_service.this.ingress
}

output "environment" {
  description = "Environment variables of the function, without those that hold a secret."
  value       = { for e in google_cloud_run_v2_service.this.template[0].containers[0].env : e.name => e.value if length(e.value_source) == 0 }
}

output "invokers" {
  description = "Members that may call the function; everyone for a service that does not check callers."
  value       = google_cloud_run_v2_service.this.invoker_iam_disabled ? ["everyone"] : sort([for m in google_cloud_run_v2_service_iam_member.invoker : m.member])
}

output "ready" {
  description = "Whether Cloud Run asks instances all the time whether they are ready."
  value       = length(google_cloud_run_v2_service.this.template[0].containers[0].readiness_probe) > 0
}

output "billing" {
  description = "What Cloud Run bills: requests or instances."
  value       = google_cloud_run_v2_service.this.template[0].containers[0].resources[0].cpu_idle ? "requests" : "instances"
}

output "traffic" {
  description = "Percentage of the requests by revision; that of the newest one has the name newest."
  value       = { for t in google_cloud_run_v2_service.this.traffic : coalesce(t.revision, "newest") => t.percent }
}

output "secrets" {
  description = "The secrets that the function reads, by variable."
  value       = { for e in google_cloud_run_v2_service.this.template[0].containers[0].env : e.name => e.value_source[0].secret_key_ref[0].secret if length(e.value_source) > 0 }
}
