output "tasks_email" {
  description = "Account as which tasks call the worker."
  value       = local.tasks
}

output "tasks_member" {
  description = "The same account as an IAM member; it may invoke the worker."
  value       = "serviceAccount:${local.tasks}"
}

output "scheduler_member" {
  description = "Account as which Cloud Scheduler calls the worker, as an IAM member; it may invoke the worker. Null without schedules."
  value       = one(google_service_account.scheduler[*].member)
}

# Built from variables, not read from the queue: functions need the name before the
# queue exists, because the queue depends on the worker, which is one of them.
output "queue" {
  description = "The full name of the queue."
  value       = "projects/${var.project_id}/locations/${var.region}/queues/${var.queue}"
}

output "purge_queue" {
  description = "The full name of the queue of purges."
  value       = "projects/${var.project_id}/locations/${var.region}/queues/${var.purge_queue}"
}

output "refresh_queues" {
  description = "The full names of the queues of refreshes."
  value       = [for name in var.refresh_queues : "projects/${var.project_id}/locations/${var.region}/queues/${name}"]
}

output "dedicated_queues" {
  description = "Names of the queues of dedicated customers."
  value       = [for key in sort(keys(google_cloud_tasks_queue.worker)) : google_cloud_tasks_queue.worker[key].name if !contains(local.common, key)]
}

output "schedules" {
  description = "Schedules of the nightly rounds, by the name of the job."
  value       = { for j in google_cloud_scheduler_job.nightly : j.name => "${j.schedule} ${j.time_zone}" }
}

output "queue_host" {
  description = "The host that every task goes to."
  value       = google_cloud_tasks_queue.worker["tasks"].http_target[0].uri_override[0].host
}

output "waiting" {
  description = "Paused queues and nightly jobs, by name."
  value = sort(concat(
    [for q in google_cloud_tasks_queue.worker : q.name if q.desired_state == "PAUSED"],
    [for j in google_cloud_scheduler_job.nightly : j.name if j.paused],
  ))
}
