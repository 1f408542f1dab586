resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = var.publishers

  topic  = google_pubsub_topic.events.name
  role   = "roles/pubsub.publisher"
  member = each.value
}

resource "google_pubsub_topic_iam_member" "burier" {
  for_each = var.buriers

  topic  = google_pubsub_topic.dead_letters.name
  role   = "roles/pubsub.publisher"
  member = each.value
}

locals {
  # Pub/Sub's own account, as which it moves dead letters and makes tokens.
  agent = "serviceAccount:service-${var.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

# To give a message up Pub/Sub publishes it to the one topic and takes it from
# the subscription of the other.
resource "google_pubsub_topic_iam_member" "agent" {
  topic  = google_pubsub_topic.dead_letters.name
  role   = "roles/pubsub.publisher"
  member = local.agent
}

resource "google_pubsub_subscription_iam_member" "agent" {
  subscription = google_pubsub_subscription.events.name
  role         = "roles/pubsub.subscriber"
  member       = local.agent
}

# Projects made before April 2021 do not let it make tokens by themselves.
resource "google_service_account_iam_member" "agent" {
  service_account_id = google_service_account.push.name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = local.agent

  # The account comes into being with the first topic of the project.
  depends_on = [google_pubsub_topic.events]
}
