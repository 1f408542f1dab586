# The archive: every message of events, in files of text in a bucket, until they reach
# an age. `affinity import --archive` restores from them.

resource "google_storage_bucket" "archive" {
  count = var.archive == null ? 0 : 1

  name                        = var.archive.bucket
  location                    = var.archive.location
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = !var.archive.deletion_protection

  # Files name users. Deleted ones must be gone, and not be kept for another week as
  # Cloud Storage does by itself.
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      age = var.archive.days
    }
  }
}

# To write files, and to read that the bucket exists.
resource "google_storage_bucket_iam_member" "archive" {
  for_each = var.archive == null ? toset([]) : toset(["roles/storage.objectCreator", "roles/storage.legacyBucketReader"])

  bucket = google_storage_bucket.archive[0].name
  role   = each.key
  member = local.agent

  # Google creates Pub/Sub's account with the first topic of the project.
  depends_on = [google_pubsub_topic.lane["events"]]
}

# Pub/Sub refuses a subscription until Google knows these grants everywhere.
resource "terraform_data" "archive_grants" {
  count = var.archive == null ? 0 : 1

  triggers_replace = [for role, grant in google_storage_bucket_iam_member.archive : grant.id]

  provisioner "local-exec" {
    command = "sleep ${var.grant_seconds}"
  }
}

resource "google_pubsub_subscription" "archive" {
  for_each = var.archive == null ? {} : local.lanes

  name                 = "${each.value.topic}-archive"
  topic                = google_pubsub_topic.lane[each.key].id
  ack_deadline_seconds = 600 # at least max_duration

  # Messages wait while the bucket cannot be written, and never become dead letters:
  # process has applied them. So nothing prevents a deletion, which ends the archive.
  message_retention_duration = "604800s"
  expiration_policy {
    ttl = ""
  }

  # Neither avro_config nor text_config: text, each message and a line break
  # (functions/docs/reference/messages.md).
  cloud_storage_config {
    bucket                   = google_storage_bucket.archive[0].name
    filename_prefix          = "${each.value.topic}/"
    filename_datetime_format = "YYYY-MM-DD/hh_mm_ssZ"
    filename_suffix          = ".ndjson"
    max_duration             = "300s"
    max_bytes                = 268435456 # 256 MiB
  }

  depends_on = [terraform_data.archive_grants]
}
