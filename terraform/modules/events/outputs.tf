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
