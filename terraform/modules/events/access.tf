# A topic without a subscription keeps no message. So who publishes may do so only once
# the subscription exists, and no longer before it goes. Until then functions use the
# common topic.
resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = var.publishers

  topic  = google_pubsub_topic.lane["events"].name
  role   = "roles/pubsub.publisher"
  member = each.value

  depends_on = [google_pubsub_subscription.lane]
}

resource "google_pubsub_topic_iam_member" "slow_publisher" {
  for_each = var.publishers

  topic  = google_pubsub_topic.lane["slow"].name
  role   = "roles/pubsub.publisher"
  member = each.value

  depends_on = [google_pubsub_subscription.lane]
}

# Who acts for a dedicated customer: their own functions, and those that serve all apps.
resource "google_pubsub_topic_iam_member" "dedicated_publisher" {
  for_each = merge([for customer, d in var.dedicated : {
    for label, member in d.publishers : "${customer}/${label}" => { customer = customer, member = member }
  }]...)

  topic  = google_pubsub_topic.lane["customer-${each.value.customer}"].name
  role   = "roles/pubsub.publisher"
  member = each.value.member

  depends_on = [google_pubsub_subscription.lane]
}

resource "google_pubsub_topic_iam_member" "burier" {
  for_each = var.buriers

  topic  = google_pubsub_topic.dead_letters.name
  role   = "roles/pubsub.publisher"
  member = each.value
}

locals {
  # Pub/Sub's own account in the project. Pub/Sub forwards dead letters and creates
  # tokens as this account.
  agent = "serviceAccount:service-${var.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

# To give a message up, Pub/Sub publishes it to the topic of dead letters and
# acknowledges it on the subscription of events.
resource "google_pubsub_topic_iam_member" "agent" {
  topic  = google_pubsub_topic.dead_letters.name
  role   = "roles/pubsub.publisher"
  member = local.agent
}

resource "google_pubsub_subscription_iam_member" "agent" {
  subscription = google_pubsub_subscription.lane["events"].name
  role         = "roles/pubsub.subscriber"
  member       = local.agent
}

resource "google_pubsub_subscription_iam_member" "slow_agent" {
  subscription = google_pubsub_subscription.lane["slow"].name
  role         = "roles/pubsub.subscriber"
  member       = local.agent
}

resource "google_pubsub_subscription_iam_member" "dedicated_agent" {
  for_each = var.dedicated

  subscription = google_pubsub_subscription.lane["customer-${each.key}"].name
  role         = "roles/pubsub.subscriber"
  member       = local.agent
}

# In projects older than April 2021, Pub/Sub cannot create tokens without this role.
resource "google_service_account_iam_member" "agent" {
  count = var.push_account == null ? 1 : 0

  service_account_id = google_service_account.push[0].name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = local.agent

  # Google creates Pub/Sub's account with the first topic of the project.
  depends_on = [google_pubsub_topic.lane["events"]]
}

moved {
  from = google_service_account_iam_member.agent
  to   = google_service_account_iam_member.agent[0]
}
