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
    TASKS_QUEUE       = "a variable that the function does not read"
  }
}

run "private_by_default" {
  command = plan

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].ingress_settings == "ALLOW_INTERNAL_ONLY" && length(google_cloud_run_service_iam_member.invoker) == 0
    error_message = "A function can be called by default."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].environment_variables == tomap({ BIGTABLE_PROJECT = "affinity-test", FIRESTORE_PROJECT = "affinity-test", GOMEMLIMIT = "460MiB" })
    error_message = "The function does not get exactly the variables that it reads, and a limit of nine tenths of its memory."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.build_config[0].environment_variables == tomap({ GOFLAGS = "-tags=disable_grpc_modules", GOOGLE_RUNTIME_VERSION = "1.26.10" })
    error_message = "The function is not built as scripts/check and releases are."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.build_config[0].runtime == "go126" && google_cloudfunctions2_function.this.build_config[0].entry_point == "Ingest"
    error_message = "The function has another runtime or entry point."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].min_instance_count == 0
    error_message = "An instance stays warm by default."
  }

  assert {
    condition     = google_service_account.this[0].account_id == "fn-ingest"
    error_message = "The function does not have its own account."
  }
}

run "memory_limit" {
  command = plan

  variables {
    memory = "2Gi"
  }

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].environment_variables["GOMEMLIMIT"] == "1843MiB"
    error_message = "The limit is not nine tenths of the memory."
  }
}

run "public" {
  variables {
    ingress  = "ALLOW_INTERNAL_AND_GCLB"
    invokers = { all = "allUsers" }
  }

  assert {
    condition     = google_cloud_run_service_iam_member.invoker["all"].role == "roles/run.invoker" && google_cloud_run_service_iam_member.invoker["all"].service == "ingest"
    error_message = "The load balancer may not call the function."
  }

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].service_account_email == "fn-ingest@affinity-test.iam.gserviceaccount.com"
    error_message = "The function runs as another account."
  }
}

# Any file serves as a zip here: the module uses only its name and hash.
run "source" {
  command = plan

  variables {
    source_zip = "versions.tf"
  }

  assert {
    condition     = google_storage_bucket_object.source.name == "ingest-${filesha256("versions.tf")}.zip" && google_storage_bucket_object.source.source == "versions.tf"
    error_message = "The object's name does not contain the hash of the zip: ${google_storage_bucket_object.source.name}"
  }

  assert {
    condition     = google_cloudfunctions2_function.this.build_config[0].source[0].storage_source[0].object == google_storage_bucket_object.source.name
    error_message = "The function is not built from the uploaded object."
  }
}

run "missing_zip" {
  command = plan

  variables {
    source_zip = "../dist/ingest.zip"
  }

  expect_failures = [google_storage_bucket_object.source]
}

run "unset_variable" {
  command = plan

  variables {
    variables = ["BIGTABLE_PROJECT", "UNHEARD_OF"]
  }

  expect_failures = [google_cloudfunctions2_function.this]
}

run "private_function_for_all_users" {
  command = plan

  variables {
    invokers = { all = "allUsers" }
  }

  expect_failures = [var.invokers]
}

run "ingress_for_all" {
  command = plan

  variables {
    ingress = "ALLOW_ALL"
  }

  expect_failures = [var.ingress]
}

run "concurrency_below_one_cpu" {
  command = plan

  variables {
    cpu = "0.5"
  }

  expect_failures = [var.concurrency]
}

run "min_above_max_instances" {
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

run "name_too_long" {
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

run "secrets" {
  command = plan

  variables {
    project_id       = "affinity-test"
    more_environment = { OTEL_SERVICE_NAME = "ingest" }
    secrets          = { OTEL_EXPORTER_OTLP_HEADERS = "otlp-headers" }
  }

  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].environment_variables["OTEL_SERVICE_NAME"] == "ingest" && length(google_cloudfunctions2_function.this.service_config[0].environment_variables) == 4
    error_message = "The function does not get the variables of its libraries beside its own."
  }

  assert {
    condition     = [for s in google_cloudfunctions2_function.this.service_config[0].secret_environment_variables : [s.key, s.secret, s.project_id, s.version]] == [["OTEL_EXPORTER_OTLP_HEADERS", "otlp-headers", "affinity-test", "latest"]]
    error_message = "The function does not get its secret."
  }

  assert {
    condition     = google_secret_manager_secret_iam_member.reader["OTEL_EXPORTER_OTLP_HEADERS"].role == "roles/secretmanager.secretAccessor" && google_secret_manager_secret_iam_member.reader["OTEL_EXPORTER_OTLP_HEADERS"].secret_id == "otlp-headers"
    error_message = "The function's account may not read the secret."
  }
}
