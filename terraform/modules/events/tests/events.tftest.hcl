mock_provider "google" {
  mock_resource "google_service_account" {
    defaults = {
      name   = "projects/affinity-test/serviceAccounts/push-events@affinity-test.iam.gserviceaccount.com"
      email  = "push-events@affinity-test.iam.gserviceaccount.com"
      member = "serviceAccount:push-events@affinity-test.iam.gserviceaccount.com"
    }
  }
}

variables {
  grant_seconds  = 0
  project_number = "123456789012"
  events         = { name = "events", subscription = "events-process" }
  dead_letters   = { name = "events-dead-letter", subscription = "events-dead-letter" }
  slow_events    = { name = "events-slow", subscription = "events-slow-process" }
  process_uri    = "https://process-abc-ew.a.run.app"

  process_slow_uri = "https://process-slow-abc-ew.a.run.app"
}

run "push" {
  assert {
    condition     = google_pubsub_subscription.lane["events"].push_config[0].push_endpoint == "https://process-abc-ew.a.run.app/"
    error_message = "Pub/Sub pushes events to another URL: ${google_pubsub_subscription.lane["events"].push_config[0].push_endpoint}"
  }

  assert {
    condition     = google_pubsub_subscription.lane["events"].push_config[0].oidc_token[0].audience == "https://process-abc-ew.a.run.app" && google_pubsub_subscription.lane["events"].push_config[0].oidc_token[0].service_account_email == "push-events@affinity-test.iam.gserviceaccount.com"
    error_message = "The push does not identify itself with the token that process expects."
  }

  assert {
    condition     = google_pubsub_subscription.lane["events"].retry_policy[0].minimum_backoff == "1s" && google_pubsub_subscription.lane["events"].retry_policy[0].maximum_backoff == "60s"
    error_message = "The backoff between attempts is not 1 s to 60 s."
  }

  # process gives up after 20 attempts and records the reason.
  assert {
    condition     = google_pubsub_subscription.lane["events"].dead_letter_policy[0].max_delivery_attempts > 20
    error_message = "Pub/Sub gives a message up before process does."
  }

  assert {
    condition     = google_pubsub_subscription.lane["events"].expiration_policy[0].ttl == "" && google_pubsub_subscription.dead_letters.expiration_policy[0].ttl == ""
    error_message = "A subscription expires when nothing uses it for a month."
  }

  assert {
    condition     = google_pubsub_subscription.dead_letters.topic == google_pubsub_topic.dead_letters.id && google_pubsub_subscription.lane["events"].dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead_letters.id
    error_message = "Dead letters have no subscription that keeps them."
  }

  assert {
    condition     = google_pubsub_topic.lane["events"].message_retention_duration == "86400s"
    error_message = "Pub/Sub does not keep applied events for a day."
  }
}

# The slow lane is a queue and a consumer of its own, with the same care.
run "slow" {
  assert {
    condition     = google_pubsub_subscription.lane["slow"].push_config[0].push_endpoint == "https://process-slow-abc-ew.a.run.app/" && google_pubsub_subscription.lane["slow"].push_config[0].oidc_token[0].audience == "https://process-slow-abc-ew.a.run.app"
    error_message = "Pub/Sub pushes slow events to another URL: ${google_pubsub_subscription.lane["slow"].push_config[0].push_endpoint}"
  }

  assert {
    condition     = google_pubsub_subscription.lane["slow"].topic == google_pubsub_topic.lane["slow"].id && google_pubsub_topic.lane["slow"].name == "events-slow"
    error_message = "The subscription of the slow lane is not of its topic."
  }

  assert {
    condition = jsonencode([google_pubsub_subscription.lane["slow"].retry_policy, google_pubsub_subscription.lane["slow"].dead_letter_policy, google_pubsub_subscription.lane["slow"].expiration_policy, google_pubsub_subscription.lane["slow"].message_retention_duration]) == jsonencode([
    google_pubsub_subscription.lane["events"].retry_policy, google_pubsub_subscription.lane["events"].dead_letter_policy, google_pubsub_subscription.lane["events"].expiration_policy, google_pubsub_subscription.lane["events"].message_retention_duration])
    error_message = "The slow lane keeps or retries messages in another way."
  }
}

run "dead_letter_access" {
  command = plan

  assert {
    condition     = google_pubsub_topic_iam_member.agent.topic == "events-dead-letter" && google_pubsub_subscription_iam_member.agent.subscription == "events-process" && google_pubsub_subscription_iam_member.slow_agent.subscription == "events-slow-process" && google_pubsub_topic_iam_member.agent.member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    error_message = "Pub/Sub's account cannot forward a message to the dead letters."
  }
}

run "publishers" {
  command = plan

  variables {
    publishers = { ingest = "serviceAccount:fn-ingest@affinity-test.iam.gserviceaccount.com" }
    buriers    = { process = "serviceAccount:fn-process@affinity-test.iam.gserviceaccount.com" }
  }

  assert {
    condition     = keys(google_pubsub_topic_iam_member.publisher) == ["ingest"] && google_pubsub_topic_iam_member.publisher["ingest"].topic == "events" && google_pubsub_topic_iam_member.slow_publisher["ingest"].topic == "events-slow" && google_pubsub_topic_iam_member.burier["process"].topic == "events-dead-letter"
    error_message = "A member may publish to the wrong topic."
  }
}

run "paused" {
  command = plan

  variables {
    paused      = true
    replay_days = 0
  }

  assert {
    condition     = length(google_pubsub_subscription.lane["events"].push_config) == 0 && length(google_pubsub_subscription.lane["slow"].push_config) == 0 && google_pubsub_subscription.lane["events"].message_retention_duration == "604800s"
    error_message = "A paused subscription does not keep messages for seven days."
  }

  assert {
    condition     = output.push_endpoint == null
    error_message = "The output names a push URL while paused."
  }

  assert {
    condition     = google_pubsub_topic.lane["events"].message_retention_duration == null
    error_message = "Pub/Sub keeps applied events although replay_days is 0."
  }
}

run "no_archive" {
  command = plan

  assert {
    condition     = length(google_storage_bucket.archive) == 0 && length(google_pubsub_subscription.archive) == 0 && length(google_storage_bucket_iam_member.archive) == 0
    error_message = "The module archives events without being asked to."
  }
}

# Every lane is archived: that of slow events, and that of each dedicated customer.
run "archive" {
  variables {
    archive   = { bucket = "affinity-test-archive", location = "europe-west1", days = 30 }
    dedicated = { acme = { process_uri = "https://process-acme-abc-ew.a.run.app" } }
  }

  assert {
    condition     = sort([for s in google_pubsub_subscription.archive : s.name]) == tolist(["events-acme-archive", "events-archive", "events-slow-archive"]) && alltrue([for key, s in google_pubsub_subscription.archive : s.topic == google_pubsub_topic.lane[key].id])
    error_message = "A lane of events is not archived."
  }

  # affinity import --archive reads text, by these endings.
  assert {
    condition     = alltrue([for s in google_pubsub_subscription.archive : length(s.cloud_storage_config[0].avro_config) == 0 && s.cloud_storage_config[0].filename_suffix == ".ndjson" && s.cloud_storage_config[0].bucket == "affinity-test-archive"])
    error_message = "The files are not text in the archive's bucket."
  }

  # Pub/Sub refuses a file that takes longer than the acknowledgement.
  assert {
    condition     = alltrue([for s in google_pubsub_subscription.archive : s.ack_deadline_seconds >= tonumber(trimsuffix(s.cloud_storage_config[0].max_duration, "s"))])
    error_message = "A file may take longer than the acknowledgement of its messages."
  }

  assert {
    condition     = alltrue([for s in google_pubsub_subscription.archive : s.expiration_policy[0].ttl == "" && s.message_retention_duration == "604800s" && length(s.dead_letter_policy) == 0])
    error_message = "Messages do not wait for the bucket."
  }

  assert {
    condition     = upper(google_storage_bucket.archive[0].location) == "EUROPE-WEST1" && google_storage_bucket.archive[0].uniform_bucket_level_access && google_storage_bucket.archive[0].public_access_prevention == "enforced" && !google_storage_bucket.archive[0].force_destroy
    error_message = "The bucket is in another place, or open."
  }

  assert {
    condition     = one(one(google_storage_bucket.archive[0].lifecycle_rule).condition).age == 30 && one(one(google_storage_bucket.archive[0].lifecycle_rule).action).type == "Delete" && google_storage_bucket.archive[0].soft_delete_policy[0].retention_duration_seconds == 0
    error_message = "Files outlast their age."
  }

  assert {
    condition     = toset([for m in google_storage_bucket_iam_member.archive : m.role]) == toset(["roles/storage.objectCreator", "roles/storage.legacyBucketReader"]) && alltrue([for m in google_storage_bucket_iam_member.archive : m.member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"])
    error_message = "Pub/Sub's account cannot write the archive, or may do more."
  }
}

run "archive_for_too_long" {
  command = plan

  variables {
    archive = { bucket = "affinity-test-archive", location = "europe-west1", days = 31 }
  }

  expect_failures = [var.archive]
}

run "too_few_attempts" {
  command = plan

  variables {
    max_delivery_attempts = 20
  }

  expect_failures = [var.max_delivery_attempts]
}

run "dead_letters_in_topic_of_events" {
  command = plan

  variables {
    dead_letters = { name = "events", subscription = "dead" }
  }

  expect_failures = [var.dead_letters]
}

run "ack_deadline_too_long" {
  command = plan

  variables {
    ack_deadline_seconds = 630
  }

  expect_failures = [var.ack_deadline_seconds]
}

run "project_id_as_number" {
  command = plan

  variables {
    project_number = "affinity-test"
  }

  expect_failures = [var.project_number]
}

run "replay_days_too_large" {
  command = plan

  variables {
    replay_days = 40
  }

  expect_failures = [var.replay_days]
}

run "dedicated" {
  variables {
    publishers = { ingest = "serviceAccount:fn-ingest@affinity-test.iam.gserviceaccount.com" }
    dedicated = { acme = {
      process_uri = "https://process-acme-abc-ew.a.run.app"
      publishers  = { ingest-acme = "serviceAccount:fn-ingest-acme@affinity-test.iam.gserviceaccount.com" }
    } }
  }

  assert {
    condition = (
      google_pubsub_topic.lane["customer-acme"].name == "events-acme" &&
      google_pubsub_subscription.lane["customer-acme"].push_config[0].push_endpoint == "https://process-acme-abc-ew.a.run.app/" &&
      google_pubsub_subscription.lane["customer-acme"].push_config[0].oidc_token[0].audience == "https://process-acme-abc-ew.a.run.app" &&
      google_pubsub_subscription.lane["customer-acme"].dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead_letters.id
    )
    error_message = "Pub/Sub does not push the customer's events to their process."
  }

  assert {
    condition     = keys(google_pubsub_topic_iam_member.dedicated_publisher) == ["acme/ingest-acme"] && google_pubsub_topic_iam_member.dedicated_publisher["acme/ingest-acme"].topic == "events-acme" && google_pubsub_subscription_iam_member.dedicated_agent["acme"].role == "roles/pubsub.subscriber"
    error_message = "Others may publish the customer's events, or Pub/Sub cannot give a message up."
  }

  assert {
    condition     = output.dedicated_subscriptions == { acme = "events-acme-process" }
    error_message = "The output names other subscriptions."
  }
}

# Only what runs empty may be deleted.
run "protected" {
  variables {
    dedicated = {
      acme = { process_uri = "https://process-acme-abc-ew.a.run.app", draining = true }
      big  = { process_uri = "https://process-big-abc-ew.a.run.app" }
    }
  }

  assert {
    condition = alltrue([for resources in [google_pubsub_topic.lane, google_pubsub_subscription.lane] :
      { for key, r in resources : key => r.deletion_policy } == { events = "PREVENT", slow = "PREVENT", customer-big = "PREVENT", customer-acme = "DELETE" }
    ]) && google_pubsub_topic.dead_letters.deletion_policy == "PREVENT" && google_pubsub_subscription.dead_letters.deletion_policy == "PREVENT"
    error_message = "Topics or subscriptions in which messages wait may be deleted, or those of a customer who drains may not."
  }
}

run "unprotected" {
  command = plan

  variables {
    deletion_protection = false
  }

  assert {
    condition     = alltrue([for r in concat(values(google_pubsub_topic.lane), [google_pubsub_topic.dead_letters]) : r.deletion_policy == "DELETE"]) && alltrue([for r in concat(values(google_pubsub_subscription.lane), [google_pubsub_subscription.dead_letters]) : r.deletion_policy == "DELETE"])
    error_message = "Before a teardown topics and subscriptions are still protected."
  }
}

run "topic_of_slow_events" {
  command = plan

  variables {
    dedicated = { slow = { process_uri = "https://process-slow-abc-ew.a.run.app" } }
  }

  expect_failures = [var.dedicated]
}
