output "push_member" {
  description = "Account that Pub/Sub calls process as; only this member may invoke process."
  value       = "serviceAccount:${local.push}"
}

output "push_account" {
  description = "Email of the same account."
  value       = local.push
}

output "topics" {
  description = "IDs of the topics: events, slow and dead_letters."
  value       = { events = google_pubsub_topic.lane["events"].name, slow = google_pubsub_topic.lane["slow"].name, dead_letters = google_pubsub_topic.dead_letters.name }
}

output "subscriptions" {
  description = "IDs of the subscriptions: events, slow and dead_letters."
  value       = { events = google_pubsub_subscription.lane["events"].name, slow = google_pubsub_subscription.lane["slow"].name, dead_letters = google_pubsub_subscription.dead_letters.name }
}

output "dedicated_subscriptions" {
  description = "IDs of the subscriptions of dedicated customers, by the customer's name."
  value       = { for customer in keys(var.dedicated) : customer => google_pubsub_subscription.lane["customer-${customer}"].name }
}

output "push_endpoint" {
  description = "URL that Pub/Sub pushes events to; null while paused."
  value       = tostring(one(google_pubsub_subscription.lane["events"].push_config[*].push_endpoint))
}

output "slow_push_endpoint" {
  description = "URL that Pub/Sub pushes slow events to; null while paused."
  value       = tostring(one(google_pubsub_subscription.lane["slow"].push_config[*].push_endpoint))
}

output "ack_deadline_seconds" {
  description = "Seconds that Pub/Sub waits for an answer to a push."
  value       = google_pubsub_subscription.lane["events"].ack_deadline_seconds
}

output "storage_regions" {
  description = "Regions in which Pub/Sub may store the messages of each topic, by topic; empty: anywhere."
  value       = { for t in concat(values(google_pubsub_topic.lane), [google_pubsub_topic.dead_letters]) : t.name => flatten(t.message_storage_policy[*].allowed_persistence_regions) }
}

output "archive_bucket" {
  description = "Name of the bucket with the archive; null without one."
  value       = one(google_storage_bucket.archive[*].name)
}
