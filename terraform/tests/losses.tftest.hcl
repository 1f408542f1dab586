# A variable that keeps less than in the last apply: the plan refuses it unless
# allow_loss names it. The mock of the bucket's objects is what earlier applies wrote.

mock_provider "google" {
  source = "./tests/mocks"
}

override_data {
  target = data.google_storage_bucket_objects.applied
  values = {
    bucket_objects = [for name in [
      "longest_retention_days/90", "longest_retention_days/365", # an apply that raised it has failed
      "archive_days/30",
      "replay_days/3",
      "backup_days/7",
      "point_in_time_recovery/1",
      "secured_keys/1",
      "warehouse_days/400",
      "data_regions/us/1",
      "dedicated_tables/big/1",
      "customers/acme/1",
      "generation/-/1",
      "location_secret/affinity-locations/1",
    ] : { name = "applied/${name}", content_type = "", media_link = "", self_link = "", storage_class = "" }]
  }
}

variables {
  project_id             = "affinity-test"
  source_dir             = null
  environment            = "prod"
  longest_retention_days = 365
  archive_days           = 30
  replay_days            = 3
  backup_days            = 7
  point_in_time_recovery = true
  secured_keys           = true
  warehouse              = true
  data_regions           = { us = { region = "us-central1" } }
  dedicated_tables       = { big = {} }
  location_secret        = "affinity-locations"
  customers              = { acme = { host = "acme.example.com", app_id = "acme_shop", dedicated = true, max_instances = 1 } }
  run_quota              = { cpu = 100, memory_gib = 100 }
}

run "unchanged" {
  assert {
    condition     = keys(google_storage_bucket_object.applied) == ["archive_days/30", "backup_days/7", "customers/acme/1", "data_regions/us/1", "dedicated_tables/big/1", "generation/-/1", "location_secret/affinity-locations/1", "longest_retention_days/365", "point_in_time_recovery/1", "replay_days/3", "secured_keys/1", "warehouse_days/400"]
    error_message = "The list of what this apply keeps is ${jsonencode(keys(google_storage_bucket_object.applied))}."
  }

  assert {
    condition     = google_kms_crypto_key.parents[0].deletion_policy == "PREVENT"
    error_message = "deletion_protection does not protect the key of parents."
  }
}

# The bucket exists now, so Terraform reads the list while it plans.

run "larger" {
  command = plan

  variables {
    longest_retention_days = 366
    replay_days            = 31
    backup_days            = 90
  }

  assert {
    condition     = length(local.lost) == 0 && contains(keys(google_storage_bucket_object.applied), "longest_retention_days/366")
    error_message = "Larger values lose ${jsonencode(local.lost)}."
  }
}

run "forever" {
  command = plan

  variables {
    longest_retention_days = 0
  }

  assert {
    condition     = length(local.lost) == 0
    error_message = "Events that are kept forever lose ${jsonencode(local.lost)}."
  }
}

run "shorter_retention" {
  command = plan

  variables {
    longest_retention_days = 364
  }

  expect_failures = [terraform_data.losses]
}

run "lost_retention" {
  command = plan

  variables {
    environment            = "dev" # where the line may be absent
    longest_retention_days = null
  }

  expect_failures = [terraform_data.losses]
}

run "shorter_archive" {
  command = plan

  variables {
    archive_days = 29
  }

  expect_failures = [terraform_data.losses]
}

run "shorter_replay" {
  command = plan

  variables {
    replay_days = 1
  }

  expect_failures = [terraform_data.losses]
}

run "no_backups" {
  command = plan

  variables {
    backup_days = 0
  }

  expect_failures = [terraform_data.losses]
}

run "no_point_in_time_recovery" {
  command = plan

  variables {
    point_in_time_recovery = false
  }

  expect_failures = [terraform_data.losses]
}

run "no_secured_keys" {
  command = plan

  variables {
    secured_keys = false
  }

  expect_failures = [terraform_data.losses]
}

run "lost_data_region" {
  command = plan

  variables {
    data_regions = {}
  }

  expect_failures = [terraform_data.losses]
}

# While deletion_protection holds, an apply would stop at the region's tables, when its queues were gone.
run "data_region_that_drains" {
  command = plan

  variables {
    data_regions = { us = { region = "us-central1", draining = true } }
  }

  assert {
    condition     = contains(keys(google_storage_bucket_object.applied), "data_regions/us/1") && strcontains(output.regions, "\"draining\":true")
    error_message = "A protected region that drains may be taken out, or the engine does not know that it drains: ${output.regions}"
  }
}

run "data_region_that_drains_without_protection" {
  command = plan

  variables {
    data_regions        = { us = { region = "us-central1", draining = true } }
    deletion_protection = false
  }

  assert {
    condition     = length(local.lost) == 0 && !contains(keys(google_storage_bucket_object.applied), "data_regions/us/1")
    error_message = "A region that drains without protection cannot be taken out."
  }
}

run "data_region_without_protection_that_does_not_drain" {
  command = plan

  variables {
    deletion_protection = false
  }

  assert {
    condition     = contains(keys(google_storage_bucket_object.applied), "data_regions/us/1")
    error_message = "A region that takes apps may be taken out."
  }
}

run "another_generation" {
  command = plan

  variables {
    generation = "2"
  }

  expect_failures = [terraform_data.losses]
}

run "another_location_secret" {
  command = plan

  variables {
    location_secret = "another"
  }

  expect_failures = [terraform_data.losses]
}

run "lost_tables" {
  command = plan

  variables {
    dedicated_tables = {}
  }

  expect_failures = [terraform_data.losses]
}

run "lost_customer" {
  command = plan

  variables {
    customers = {}
  }

  expect_failures = [terraform_data.losses]
}

run "customer_who_never_drained" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme_shop" } }
  }

  expect_failures = [terraform_data.losses]
}

# From then on nothing of the customer must be kept.
run "customer_who_drains" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme_shop", dedicated = true, draining = true, max_instances = 1 } }
  }

  assert {
    condition     = length(local.lost) == 0 && !contains(keys(google_storage_bucket_object.applied), "customers/acme/1")
    error_message = "A customer who drains loses ${jsonencode(local.lost)}."
  }
}

run "allowed_losses" {
  command = plan

  variables {
    longest_retention_days = 90
    secured_keys           = false
    allow_loss             = ["longest_retention_days", "secured_keys"]
  }

  assert {
    condition     = length(google_kms_crypto_key.parents) == 0 && contains(keys(google_storage_bucket_object.applied), "longest_retention_days/90")
    error_message = "The allowed losses do not happen."
  }
}

run "one_of_two_losses_allowed" {
  command = plan

  variables {
    longest_retention_days = 90
    secured_keys           = false
    allow_loss             = ["longest_retention_days"]
  }

  expect_failures = [terraform_data.losses]
}

run "loss_allowed_that_does_not_happen" {
  command = plan

  variables {
    allow_loss = ["archive_days"]
  }

  expect_failures = [terraform_data.losses]
}

# Draining comes first, or a protection stops the apply half-way.
run "lost_data_region_allowed" {
  command = plan

  variables {
    data_regions = {}
    allow_loss   = ["data_regions"]
  }

  expect_failures = [var.allow_loss]
}

run "loss_of_an_unknown_variable_allowed" {
  command = plan

  variables {
    allow_loss = ["retention"]
  }

  expect_failures = [var.allow_loss]
}
