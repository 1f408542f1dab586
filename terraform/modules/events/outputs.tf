output "push_member" {
  description = "As whom Pub/Sub calls process: the one who may invoke it."
  value       = google_service_account.push.member
}

output "topics" {
  description = "The topics' ids, by what they carry."
  value       = { events = google_pubsub_topic.events.name, dead_letters = google_pubsub_topic.dead_letters.name }
}

output "subscriptions" {
  description = "The subscriptions' ids, by what they carry."
  value       = { events = google_pubsub_subscription.events.name, dead_letters = google_pubsub_subscription.dead_letters.name }
}

output "push_endpoint" {
  description = "Where events are pushed to; null while they wait."
  value       = tostring(one(google_pubsub_subscription.events.push_config[*].push_endpoint))
}

output "ack_deadline_seconds" {
  description = "How long Pub/Sub waits for an answer to a push."
  value       = google_pubsub_subscription.events.ack_deadline_seconds
}
