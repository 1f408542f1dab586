# The deletion of users and apps: a scheduled query, twice a day. A deleted user is out of the view at once, and out of
# the table within 14 hours: 12 between two runs, and 90 minutes in which BigQuery may not delete a new row.

locals {
  eraser = var.service_account == null ? google_service_account.eraser[0].email : var.service_account.email
}

resource "google_service_account" "eraser" {
  count = var.service_account == null ? 1 : 0

  account_id   = "warehouse-eraser"
  display_name = "Deletes events of deleted users in BigQuery"
}

resource "google_project_iam_member" "eraser" {
  count = var.service_account == null ? 1 : 0

  project = var.project_id
  role    = "roles/bigquery.jobUser"
  member  = "serviceAccount:${local.eraser}"
}

resource "google_bigquery_table_iam_member" "eraser" {
  for_each = { event_rows = "roles/bigquery.dataEditor", deletions = "roles/bigquery.dataViewer" }

  dataset_id = google_bigquery_dataset.this.dataset_id
  table_id   = google_bigquery_table.rows[each.key].table_id
  role       = each.value
  member     = "serviceAccount:${local.eraser}"
}

# BigQuery's own account for scheduled queries makes tokens as the account of the query.
resource "google_service_account_iam_member" "scheduler" {
  count = var.service_account == null ? 1 : 0

  service_account_id = google_service_account.eraser[0].name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = "serviceAccount:service-${var.project_number}@gcp-sa-bigquerydatatransfer.iam.gserviceaccount.com"
}

resource "google_bigquery_data_transfer_config" "deletion" {
  display_name         = "Affinity: deleted users${var.ending}"
  location             = var.location
  data_source_id       = "scheduled_query"
  schedule             = "every 12 hours"
  service_account_name = local.eraser
  params = {
    query = templatefile("${path.module}/delete.sql", local.names)
  }

  depends_on = [google_project_iam_member.eraser, google_bigquery_table_iam_member.eraser, google_service_account_iam_member.scheduler]
}
