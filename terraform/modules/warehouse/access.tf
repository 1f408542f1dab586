# A topic without a subscription keeps no message, so who publishes may do so only once the subscription exists.
# Until then process gets an error, and Pub/Sub delivers the events again.
resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = merge([for table in keys(local.tables) : { for label, member in var.publishers : "${table}/${label}" => { table = table, member = member } }]...)

  topic  = google_pubsub_topic.rows[each.value.table].name
  role   = "roles/pubsub.publisher"
  member = each.value.member

  depends_on = [google_pubsub_subscription.rows]
}

resource "google_bigquery_table_iam_member" "writer" {
  for_each = local.tables

  dataset_id = google_bigquery_dataset.this.dataset_id
  table_id   = google_bigquery_table.rows[each.key].table_id
  role       = "roles/bigquery.dataEditor"
  member     = local.agent

  # Google creates Pub/Sub's account with the first topic of the project.
  depends_on = [google_pubsub_topic.rows]
}

# To give a message up, Pub/Sub publishes it to the topic of dead letters and acknowledges it on the subscription.
resource "google_pubsub_topic_iam_member" "agent" {
  topic  = google_pubsub_topic.dead_letters.name
  role   = "roles/pubsub.publisher"
  member = local.agent
}

resource "google_pubsub_subscription_iam_member" "agent" {
  for_each = local.tables

  subscription = google_pubsub_subscription.rows[each.key].name
  role         = "roles/pubsub.subscriber"
  member       = local.agent
}
