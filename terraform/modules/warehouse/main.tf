# Rows for analysts: process and imports publish them, and subscriptions write them to BigQuery. The columns are
# those of Go's package shared/intake/warehouse, which a test compares.

locals {
  tables = {
    event_rows = { topic = "${var.topic}${var.ending}", partition = "time", days = var.days, clustering = ["app", "user_token"] }
    # A message may wait for 7 days, and as a dead letter for 31 days more. Later none can return that a deletion
    # covers, and the token of a deleted user goes, too.
    deletions = { topic = "${var.topic}-deletions${var.ending}", partition = "written_at", days = 60, clustering = ["app", "user_token"] }
  }

  # Names of the tables in the texts of SQL.
  names = { for name, t in google_bigquery_table.rows : name => "`${var.project_id}.${google_bigquery_dataset.this.dataset_id}.${t.table_id}`" }

  deletion_policy = var.deletion_protection ? "PREVENT" : "DELETE"

  # Pub/Sub's own account in the project.
  agent = "serviceAccount:service-${var.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

resource "google_bigquery_dataset" "this" {
  dataset_id  = "affinity${replace(replace(var.ending, ".", "_"), "-", "_")}"
  location    = var.location
  description = "Events of Affinity. Ask the view events."

  # Deleted rows can be read again for this long: BigQuery's minimum.
  max_time_travel_hours = "48"
}

resource "google_bigquery_table" "rows" {
  for_each = local.tables

  dataset_id          = google_bigquery_dataset.this.dataset_id
  table_id            = each.key
  schema              = file("${path.module}/${each.key}.json")
  clustering          = each.value.clustering
  deletion_protection = var.deletion_protection

  time_partitioning {
    type  = "DAY"
    field = each.value.partition
    # Without a value the provider would leave the one of before.
    expiration_ms = (each.value.days == 0 ? 36500 : each.value.days) * 86400000
  }
}

resource "google_bigquery_table" "events" {
  dataset_id          = google_bigquery_dataset.this.dataset_id
  table_id            = "events"
  description         = "Each event once, without those of deleted users."
  deletion_protection = false # it has no rows of its own

  view {
    query          = templatefile("${path.module}/view.sql", local.names)
    use_legacy_sql = false
  }
}

resource "google_pubsub_topic" "rows" {
  for_each = local.tables

  name            = each.value.topic
  deletion_policy = local.deletion_policy

  dynamic "message_storage_policy" {
    for_each = var.storage_regions == null ? [] : [var.storage_regions]
    content {
      allowed_persistence_regions = message_storage_policy.value
    }
  }
}

# Pub/Sub refuses a subscription until Google knows these grants everywhere.
resource "terraform_data" "grants" {
  triggers_replace = [for name, grant in google_bigquery_table_iam_member.writer : grant.id]

  provisioner "local-exec" {
    command = "sleep ${var.grant_seconds}"
  }
}

resource "google_pubsub_subscription" "rows" {
  for_each = local.tables

  name            = "${each.value.topic}-bigquery"
  topic           = google_pubsub_topic.rows[each.key].id
  deletion_policy = local.deletion_policy

  # Messages wait while BigQuery cannot be written, for a week.
  message_retention_duration = "604800s"
  expiration_policy {
    ttl = ""
  }

  bigquery_config {
    table            = "${var.project_id}.${google_bigquery_dataset.this.dataset_id}.${google_bigquery_table.rows[each.key].table_id}"
    use_table_schema = true
    # A table without the newest column takes the others.
    drop_unknown_fields = true
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letters.id
    max_delivery_attempts = 100
  }

  depends_on = [terraform_data.grants]
}

# Rows that BigQuery does not take.
resource "google_pubsub_topic" "dead_letters" {
  name            = "${var.topic}-dead-letter${var.ending}"
  deletion_policy = local.deletion_policy

  dynamic "message_storage_policy" {
    for_each = var.storage_regions == null ? [] : [var.storage_regions]
    content {
      allowed_persistence_regions = message_storage_policy.value
    }
  }
}

# A topic without a subscription does not keep its messages.
resource "google_pubsub_subscription" "dead_letters" {
  name                       = "${var.topic}-dead-letter${var.ending}"
  topic                      = google_pubsub_topic.dead_letters.id
  deletion_policy            = local.deletion_policy
  ack_deadline_seconds       = 60
  message_retention_duration = "2678400s" # 31 days, Pub/Sub's maximum
  expiration_policy {
    ttl = ""
  }
}
