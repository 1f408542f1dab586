mock_provider "google" {}

variables {
  project_id = "affinity-test"
  location   = "europe-west1"
}

run "protected_by_default" {
  command = plan

  assert {
    condition     = google_firestore_database.this.name == "affinity" && google_firestore_database.this.type == "FIRESTORE_NATIVE"
    error_message = "The database has another name or type."
  }

  assert {
    condition     = google_firestore_database.this.delete_protection_state == "DELETE_PROTECTION_ENABLED" && google_firestore_database.this.deletion_policy == "DELETE"
    error_message = "The database can be deleted by default, or Terraform only forgets it when it is."
  }

  # Queries filter jobs by state and startedAt, and shards by n, state and a count, and
  # add up the shards' numbers. These fields need their indexes.
  assert {
    condition     = length(setintersection([for f in google_firestore_field.unindexed : f.field], ["n", "state", "startedAt", "counts", "plannedUsers", "stale", "hash", "id"])) == 0
    error_message = "A field that queries read has no index."
  }

  assert {
    condition     = contains(keys(google_firestore_field.unindexed), "strategies/strategy") && contains(keys(google_firestore_field.unindexed), "indexes/attributesForFaceting") && length(setsubtract(["apps/privateFacets", "apps/dates", "apps/trackNames", "feeds/definition", "savedSegments/where"], keys(google_firestore_field.unindexed))) == 0
    error_message = "Large fields that no query reads are indexed."
  }

  assert {
    condition     = length(google_firestore_field.expiring) == 0
    error_message = "Documents expire by default."
  }
}

run "unprotected" {
  command = plan

  variables {
    deletion_protection    = false
    point_in_time_recovery = true
  }

  assert {
    condition     = google_firestore_database.this.delete_protection_state == "DELETE_PROTECTION_DISABLED" && google_firestore_database.this.point_in_time_recovery_enablement == "POINT_IN_TIME_RECOVERY_ENABLED"
    error_message = "The database is protected, or has no point-in-time recovery."
  }
}

run "expiring" {
  command = plan

  variables {
    expiring = { shards = "expiresAt" }
  }

  assert {
    condition     = google_firestore_field.expiring["shards"].field == "expiresAt" && length(google_firestore_field.expiring["shards"].ttl_config) == 1 && length(google_firestore_field.expiring["shards"].index_config) == 1 && output.expiring == { shards = "expiresAt" }
    error_message = "The documents of shards do not expire by expiresAt."
  }
}

run "access" {
  command = plan

  variables {
    viewers = { ingest = "serviceAccount:fn-ingest@affinity-test.iam.gserviceaccount.com" }
    users   = { worker = "serviceAccount:fn-worker@affinity-test.iam.gserviceaccount.com" }
  }

  assert {
    condition     = google_project_iam_member.viewer["ingest"].role == "roles/datastore.viewer" && google_project_iam_member.user["worker"].role == "roles/datastore.user"
    error_message = "A member has another role."
  }

  assert {
    condition     = google_project_iam_member.viewer["ingest"].condition[0].expression == "resource.name == \"projects/affinity-test/databases/affinity\""
    error_message = "The role is not limited to the one database: ${google_project_iam_member.viewer["ingest"].condition[0].expression}"
  }
}

run "invalid_database_name" {
  command = plan

  variables {
    database = "Affinity"
  }

  expect_failures = [var.database]
}

run "unindexed_and_expiring" {
  command = plan

  variables {
    expiring = { shards = "next" }
  }

  expect_failures = [var.expiring]
}

run "viewer_and_user" {
  command = plan

  variables {
    viewers = { worker = "serviceAccount:fn-worker@affinity-test.iam.gserviceaccount.com" }
    users   = { worker = "serviceAccount:fn-worker@affinity-test.iam.gserviceaccount.com" }
  }

  expect_failures = [var.users]
}

run "backups" {
  command = plan

  variables {
    backup_days = 7
  }

  assert {
    condition     = google_firestore_backup_schedule.daily[0].database == "affinity" && google_firestore_backup_schedule.daily[0].retention == "604800s" && length(google_firestore_backup_schedule.daily[0].daily_recurrence) == 1
    error_message = "The database has no daily backup that is kept for a week."
  }
}

run "no_backups" {
  command = plan

  assert {
    condition     = length(google_firestore_backup_schedule.daily) == 0
    error_message = "There are backups without backup_days."
  }
}

run "backup_days_too_large" {
  command = plan

  variables {
    backup_days = 365
  }

  expect_failures = [var.backup_days]
}

run "queued_jobs" {
  command = plan

  variables {
    queued = ["recomputes", "crowds"]
  }

  assert {
    condition     = keys(google_firestore_index.queued) == ["crowds", "recomputes"] && alltrue([for i in google_firestore_index.queued : i.query_scope == "COLLECTION_GROUP" && [for f in i.fields : f.field_path] == ["queue", "state", "queuedAt"]])
    error_message = "The count of queued jobs has no index over all apps."
  }
}
