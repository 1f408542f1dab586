locals {
  # The account as which Pub/Sub calls process, the same in all regions.
  push = var.push_account == null ? google_service_account.push[0].email : var.push_account.email

  deletion_policy = var.deletion_protection ? "PREVENT" : "DELETE"

  # The lanes of events, each with a consumer of its own: the events of apps that are
  # over their limit are slow, and must not wait before those of other apps.
  lanes = merge(
    {
      events = { topic = "${var.events.name}${var.ending}", subscription = "${var.events.subscription}${var.ending}", uri = var.process_uri, protected = var.deletion_protection }
      slow   = { topic = "${var.slow_events.name}${var.ending}", subscription = "${var.slow_events.subscription}${var.ending}", uri = var.process_slow_uri, protected = var.deletion_protection }
    },
    # A dedicated customer's events never wait for another customer's, so they need no
    # slow lane.
    { for customer, d in var.dedicated : "customer-${customer}" => {
      topic        = "${var.events.name}-${customer}${var.ending}"
      subscription = "${var.events.name}-${customer}-process${var.ending}"
      uri          = d.process_uri
      protected    = var.deletion_protection && !d.draining
    } },
  )
}

resource "google_pubsub_topic" "lane" {
  for_each = local.lanes

  name            = each.value.topic
  deletion_policy = each.value.protected ? "PREVENT" : "DELETE"

  # Pub/Sub keeps acknowledged messages for this long, so that they can be applied again.
  message_retention_duration = var.replay_days == 0 ? null : "${var.replay_days * 86400}s"

  dynamic "message_storage_policy" {
    for_each = var.storage_regions == null ? [] : [var.storage_regions]
    content {
      allowed_persistence_regions = message_storage_policy.value
    }
  }
}

resource "google_pubsub_topic" "dead_letters" {
  name            = "${var.dead_letters.name}${var.ending}"
  deletion_policy = local.deletion_policy

  dynamic "message_storage_policy" {
    for_each = var.storage_regions == null ? [] : [var.storage_regions]
    content {
      allowed_persistence_regions = message_storage_policy.value
    }
  }
}

resource "google_service_account" "push" {
  count = var.push_account == null ? 1 : 0

  account_id   = "push-events"
  display_name = "Pub/Sub pushing events to process"
}

resource "google_pubsub_subscription" "lane" {
  for_each = local.lanes

  name                 = each.value.subscription
  topic                = google_pubsub_topic.lane[each.key].id
  ack_deadline_seconds = var.ack_deadline_seconds
  deletion_policy      = each.value.protected ? "PREVENT" : "DELETE" # messages may wait

  # Waiting messages outlast an outage. The subscription itself never expires, even
  # if nothing uses it for a month.
  message_retention_duration = "604800s"
  expiration_policy {
    ttl = ""
  }

  # Without push_config, Pub/Sub waits for a pull. No client pulls, so messages wait.
  dynamic "push_config" {
    for_each = var.paused ? [] : [each.value.uri]
    content {
      push_endpoint = "${push_config.value}/"

      oidc_token {
        service_account_email = local.push
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

# A topic without a subscription does not keep its messages.
resource "google_pubsub_subscription" "dead_letters" {
  name                       = "${var.dead_letters.subscription}${var.ending}"
  topic                      = google_pubsub_topic.dead_letters.id
  deletion_policy            = local.deletion_policy
  ack_deadline_seconds       = 60
  message_retention_duration = "2678400s" # 31 days, Pub/Sub's maximum
  expiration_policy {
    ttl = ""
  }
}

moved {
  from = google_service_account.push
  to   = google_service_account.push[0]
}

# The topic and the subscription of events had no lanes at first.
moved {
  from = google_pubsub_topic.events
  to   = google_pubsub_topic.lane["events"]
}

moved {
  from = google_pubsub_subscription.events
  to   = google_pubsub_subscription.lane["events"]
}
