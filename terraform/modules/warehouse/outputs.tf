output "topic" {
  description = "ID of the topic of the rows of events."
  value       = google_pubsub_topic.rows["event_rows"].name
}

output "dead_letters" {
  description = "Subscription of rows that BigQuery did not take."
  value       = google_pubsub_subscription.dead_letters.name
}

output "dataset" {
  description = "ID of the dataset: the view events is for analysts."
  value       = google_bigquery_dataset.this.dataset_id
}

output "service_account" {
  description = "Account as which the deletion runs."
  value       = local.eraser
}
