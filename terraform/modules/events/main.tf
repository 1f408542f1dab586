resource "google_pubsub_topic" "events" {
  name = var.events.name

  # Kept even when they are acknowledged, so that a subscription can go back.
  message_retention_duration = var.replay_days == 0 ? null : "${var.replay_days * 86400}s"
}

resource "google_pubsub_topic" "dead_letters" {
  name = var.dead_letters.name
}

resource "google_service_account" "push" {
  account_id   = "push-events"
  display_name = "Pub/Sub pushing events to process"
}

resource "google_pubsub_subscription" "events" {
  name                 = var.events.subscription
  topic                = google_pubsub_topic.events.id
  ack_deadline_seconds = var.ack_deadline_seconds

  # Seven days of a backlog outlast an outage; a subscription that nobody calls
  # for a month must stay all the same.
  message_retention_duration = "604800s"
  expiration_policy {
    ttl = ""
  }

  # Without a push the subscription is one that is pulled, and nobody does.
  dynamic "push_config" {
    for_each = var.paused ? [] : [var.process_uri]
    content {
      push_endpoint = "${push_config.value}/"

      oidc_token {
        service_account_email = google_service_account.push.email
        audience              = push_config.value
      }
    }
  }

  retry_policy {
    minimum_backoff = "1s"
    maximum_backoff = "60s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letters.id
    max_delivery_attempts = var.max_delivery_attempts
  }
}

# A topic without a subscription keeps nothing.
resource "google_pubsub_subscription" "dead_letters" {
  name                       = var.dead_letters.subscription
  topic                      = google_pubsub_topic.dead_letters.id
  ack_deadline_seconds       = 60
  message_retention_duration = "2678400s" # 31 days, the longest there is
  expiration_policy {
    ttl = ""
  }
}
