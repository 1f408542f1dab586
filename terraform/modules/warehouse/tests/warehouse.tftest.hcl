mock_provider "google" {
  mock_resource "google_service_account" {
    defaults = {
      name   = "projects/affinity-test/serviceAccounts/warehouse-eraser@affinity-test.iam.gserviceaccount.com"
      email  = "warehouse-eraser@affinity-test.iam.gserviceaccount.com"
      member = "serviceAccount:warehouse-eraser@affinity-test.iam.gserviceaccount.com"
    }
  }
}

variables {
  grant_seconds  = 0
  project_id     = "affinity-test"
  project_number = "123456789012"
  location       = "europe-west1"
  topic          = "warehouse"
  days           = 400
  publishers     = { process = "serviceAccount:process@affinity-test.iam.gserviceaccount.com" }
}

run "tables" {
  assert {
    condition     = google_bigquery_dataset.this.dataset_id == "affinity" && google_bigquery_dataset.this.max_time_travel_hours == "48"
    error_message = "The dataset has another name, or keeps deleted rows for longer than BigQuery's minimum."
  }

  assert {
    condition     = google_bigquery_table.rows["event_rows"].time_partitioning[0].field == "time" && google_bigquery_table.rows["event_rows"].time_partitioning[0].type == "DAY" && google_bigquery_table.rows["event_rows"].clustering[0] == "app"
    error_message = "The table of events is not by day and app."
  }

  assert {
    condition     = google_bigquery_table.rows["event_rows"].time_partitioning[0].expiration_ms == 34560000000 && google_bigquery_table.rows["deletions"].time_partitioning[0].expiration_ms == 5184000000
    error_message = "Rows do not end after 400 days, or deletions after 60, when no message of before can come any more."
  }

  assert {
    condition     = alltrue([for t in values(google_bigquery_table.rows) : t.deletion_protection])
    error_message = "Terraform would delete a table."
  }

  assert {
    condition     = !strcontains(google_bigquery_table.events.view[0].query, "$${") && strcontains(google_bigquery_table.events.view[0].query, "FROM `affinity-test.affinity.event_rows` AS e") && strcontains(google_bigquery_table.events.view[0].query, "FROM `affinity-test.affinity.deletions` AS d")
    error_message = "The view reads other tables: ${google_bigquery_table.events.view[0].query}"
  }
}

run "messages" {
  assert {
    condition     = google_pubsub_subscription.rows["event_rows"].bigquery_config[0].table == "affinity-test.affinity.event_rows" && google_pubsub_subscription.rows["deletions"].bigquery_config[0].table == "affinity-test.affinity.deletions" && alltrue([for s in values(google_pubsub_subscription.rows) : s.bigquery_config[0].use_table_schema])
    error_message = "A subscription writes to another table, or not to its columns."
  }

  assert {
    condition     = google_pubsub_topic.rows["event_rows"].name == "warehouse" && google_pubsub_topic.rows["deletions"].name == "warehouse-deletions"
    error_message = "The engine publishes to other topics."
  }

  assert {
    condition     = alltrue([for s in values(google_pubsub_subscription.rows) : s.dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead_letters.id && s.expiration_policy[0].ttl == ""])
    error_message = "Rows that BigQuery does not take are lost."
  }

  assert {
    condition     = google_bigquery_table_iam_member.writer["event_rows"].member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    error_message = "Pub/Sub may not write the table."
  }

  assert {
    condition     = keys(google_pubsub_topic_iam_member.publisher) == ["deletions/process", "event_rows/process"]
    error_message = "The publishers may not publish to both topics."
  }

  assert {
    condition     = alltrue([for r in concat(values(google_pubsub_topic.rows), [google_pubsub_topic.dead_letters]) : r.deletion_policy == "PREVENT"]) && alltrue([for r in concat(values(google_pubsub_subscription.rows), [google_pubsub_subscription.dead_letters]) : r.deletion_policy == "PREVENT"])
    error_message = "Topics or subscriptions in which rows wait may be deleted."
  }
}

run "deletion" {
  assert {
    condition     = google_bigquery_data_transfer_config.deletion.data_source_id == "scheduled_query" && google_bigquery_data_transfer_config.deletion.schedule == "every 12 hours" && google_bigquery_data_transfer_config.deletion.location == "europe-west1"
    error_message = "The deletion does not run twice a day."
  }

  assert {
    condition     = strcontains(google_bigquery_data_transfer_config.deletion.params.query, "DELETE FROM `affinity-test.affinity.event_rows` e") && !strcontains(google_bigquery_data_transfer_config.deletion.params.query, "$${")
    error_message = "The deletion is about another table: ${google_bigquery_data_transfer_config.deletion.params.query}"
  }

  assert {
    condition     = google_bigquery_table_iam_member.eraser["event_rows"].role == "roles/bigquery.dataEditor" && google_bigquery_table_iam_member.eraser["deletions"].role == "roles/bigquery.dataViewer"
    error_message = "The deletion may not delete, or may change the deletions."
  }
}

run "data_region" {
  variables {
    ending          = ".us-1"
    location        = "us-central1"
    storage_regions = ["us-central1"]
    days            = 0
    service_account = { email = "warehouse-eraser@affinity-test.iam.gserviceaccount.com" }
  }

  assert {
    condition     = output.dataset == "affinity_us_1" && google_pubsub_topic.rows["event_rows"].name == "warehouse.us-1" && google_pubsub_topic.rows["deletions"].name == "warehouse-deletions.us-1" && length(google_service_account.eraser) == 0
    error_message = "The names of the data region are not its own."
  }

  assert {
    condition     = alltrue([for t in concat(values(google_pubsub_topic.rows), [google_pubsub_topic.dead_letters]) : tolist(t.message_storage_policy[0].allowed_persistence_regions) == tolist(["us-central1"])]) && google_bigquery_dataset.this.location == "us-central1"
    error_message = "Rows leave the data region."
  }

  assert {
    condition     = google_bigquery_table.rows["event_rows"].time_partitioning[0].expiration_ms == 3153600000000
    error_message = "Rows end although they should be kept for ever."
  }
}

run "part_of_a_day" {
  command = plan

  variables {
    days = 1.5
  }

  expect_failures = [var.days]
}
