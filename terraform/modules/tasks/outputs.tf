output "tasks_email" {
  description = "The account that tasks call the worker as."
  value       = google_service_account.tasks.email
}

output "tasks_member" {
  description = "The same as a member of a policy: it may invoke the worker."
  value       = google_service_account.tasks.member
}

output "scheduler_member" {
  description = "As whom Cloud Scheduler calls the worker: it may invoke it."
  value       = google_service_account.scheduler.member
}

# Of names, not of the queue: the functions that order tasks are told of it
# before it is there, since it waits for the worker, which is one of them.
output "queue" {
  description = "The full name of the queue."
  value       = "projects/${var.project_id}/locations/${var.region}/queues/${var.queue}"
}

output "schedules" {
  description = "When the nightly rounds begin, by the name of the job."
  value       = { for j in google_cloud_scheduler_job.nightly : j.name => "${j.schedule} ${j.time_zone}" }
}

output "queue_host" {
  description = "The host that every task goes to."
  value       = google_cloud_tasks_queue.worker.http_target[0].uri_override[0].host
}

output "waiting" {
  description = "What waits instead of being carried out: the queue and the nightly jobs, by name."
  value = sort(concat(
    google_cloud_tasks_queue.worker.desired_state == "PAUSED" ? [google_cloud_tasks_queue.worker.name] : [],
    [for j in google_cloud_scheduler_job.nightly : j.name if j.paused],
  ))
}
