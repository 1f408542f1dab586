resource "google_firestore_database" "this" {
  name                              = var.database
  location_id                       = var.location
  type                              = "FIRESTORE_NATIVE"
  point_in_time_recovery_enablement = var.point_in_time_recovery ? "POINT_IN_TIME_RECOVERY_ENABLED" : "POINT_IN_TIME_RECOVERY_DISABLED"
  delete_protection_state           = var.deletion_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"

  # By default Terraform would only forget the database, and the next apply would
  # find one of the same name.
  deletion_policy = "DELETE"
}

resource "google_firestore_backup_schedule" "daily" {
  count = var.backup_days == 0 ? 0 : 1

  database  = google_firestore_database.this.name
  retention = "${var.backup_days * 86400}s"

  daily_recurrence {}
}

locals {
  unindexed = merge([for collection, fields in var.unindexed : {
    for field in fields : "${collection}/${field}" => { collection = collection, field = field }
  }]...)
}

# Nearly every query looks at one field, for which Firestore has an index by default.
# These resources remove indexes that no query uses.
resource "google_firestore_field" "unindexed" {
  for_each = local.unindexed

  database   = google_firestore_database.this.name
  collection = each.value.collection
  field      = each.value.field

  index_config {}
}

# The count of the unfinished jobs of all apps that are before a job in its queue.
resource "google_firestore_index" "queued" {
  for_each = var.queued

  database    = google_firestore_database.this.name
  collection  = each.key
  query_scope = "COLLECTION_GROUP"

  dynamic "fields" {
    for_each = ["queue", "state", "queuedAt"]
    content {
      field_path = fields.value
      order      = "ASCENDING"
    }
  }
}

resource "google_firestore_field" "expiring" {
  for_each = var.expiring

  database   = google_firestore_database.this.name
  collection = each.key
  field      = each.value

  ttl_config {}

  # No query looks at this field.
  index_config {}
}

locals {
  # Firestore's roles are granted on the project; the condition limits them to this
  # database.
  only = "resource.name == \"projects/${var.project_id}/databases/${var.database}\""
}

resource "google_project_iam_member" "viewer" {
  for_each = var.viewers

  project = var.project_id
  role    = "roles/datastore.viewer"
  member  = each.value

  condition {
    title      = "Only the database ${var.database}"
    expression = local.only
  }
}

resource "google_project_iam_member" "user" {
  for_each = var.users

  project = var.project_id
  role    = "roles/datastore.user"
  member  = each.value

  condition {
    title      = "Only the database ${var.database}"
    expression = local.only
  }
}
