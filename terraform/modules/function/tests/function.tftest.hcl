mock_provider "google" {
  mock_resource "google_service_account" {
    defaults = {
      email  = "fn-ingest@affinity-test.iam.gserviceaccount.com"
      member = "serviceAccount:fn-ingest@affinity-test.iam.gserviceaccount.com"
    }
  }
}

variables {
  name                  = "ingest"
  region                = "europe-west1"
  entry_point           = "Ingest"
  bucket                = "affinity-test-source"
  build_service_account = "projects/affinity-test/serviceAccounts/fn-build@affinity-test.iam.gserviceaccount.com"
  variables             = ["BIGTABLE_PROJECT", "FIRESTORE_PROJECT"]
  environment = {
    BIGTABLE_PROJECT  = "affinity-test"
    FIRESTORE_PROJECT = "affinity-test"
    TASKS_QUEUE       = "none of its business"
  }
}

run "private_by_itself" {
  command = plan

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].ingress_settings == "ALLOW_INTERNAL_ONLY" && length(google_cloud_run_service_iam_member.invoker) == 0
    error_message = "A function of which nothing is said can be called."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].environment_variables == tomap({ BIGTABLE_PROJECT = "affinity-test", FIRESTORE_PROJECT = "affinity-test" })
    error_message = "The function is not given exactly what it reads."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.build_config[0].runtime == "go126" && google_cloudfunctions2_function.this.build_config[0].entry_point == "Ingest"
    error_message = "The function is built as something else."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].min_instance_count == 0
    error_message = "An instance is kept warm without having been asked for."
  }

  assert {
    condition     = google_service_account.this.account_id == "fn-ingest"
    error_message = "The function has no account of its own."
  }
}

run "public" {
  variables {
    ingress  = "ALLOW_INTERNAL_AND_GCLB"
    invokers = { all = "allUsers" }
  }

  assert {
    condition     = google_cloud_run_service_iam_member.invoker["all"].role == "roles/run.invoker" && google_cloud_run_service_iam_member.invoker["all"].service == "ingest"
    error_message = "The load balancer may not call the function's service."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].service_account_email == "fn-ingest@affinity-test.iam.gserviceaccount.com"
    error_message = "The function runs as another account."
  }
}

# Any file is a zip here: only its name and hash are looked at.
run "source" {
  command = plan

  variables {
    source_zip = "versions.tf"
  }

  assert {
    condition     = google_storage_bucket_object.source.name == "ingest-${filesha256("versions.tf")}.zip" && google_storage_bucket_object.source.source == "versions.tf"
    error_message = "The object is not named by what the zip holds: ${google_storage_bucket_object.source.name}"
  }

  assert {
    condition     = google_cloudfunctions2_function.this.build_config[0].source[0].storage_source[0].object == google_storage_bucket_object.source.name
    error_message = "The function is not built from the object."
  }
}

run "source_that_is_missing" {
  command = plan

  variables {
    source_zip = "../dist/ingest.zip"
  }

  expect_failures = [google_storage_bucket_object.source]
}

run "variable_that_nobody_knows" {
  command = plan

  variables {
    variables = ["BIGTABLE_PROJECT", "UNHEARD_OF"]
  }

  expect_failures = [google_cloudfunctions2_function.this]
}

run "private_called_by_all" {
  command = plan

  variables {
    invokers = { all = "allUsers" }
  }

  expect_failures = [var.invokers]
}

run "past_the_load_balancer" {
  command = plan

  variables {
    ingress = "ALLOW_ALL"
  }

  expect_failures = [var.ingress]
}

run "more_at_once_than_a_cpu_takes" {
  command = plan

  variables {
    cpu = "0.5"
  }

  expect_failures = [var.concurrency]
}

run "least_above_most" {
  command = plan

  variables {
    min_instances = 11
  }

  expect_failures = [var.min_instances]
}

run "old_runtime" {
  command = plan

  variables {
    runtime = "go125"
  }

  expect_failures = [var.runtime]
}

run "name_too_long_for_an_account" {
  command = plan

  variables {
    name = "profiles-of-a-customer-of-ours"
  }

  expect_failures = [var.name]
}

run "memory_without_a_unit" {
  command = plan

  variables {
    memory = "512"
  }

  expect_failures = [var.memory]
}
