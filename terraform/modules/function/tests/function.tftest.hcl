mock_provider "google" {
  mock_resource "google_service_account" {
    defaults = {
      email  = "fn-ingest@affinity-test.iam.gserviceaccount.com"
      member = "serviceAccount:fn-ingest@affinity-test.iam.gserviceaccount.com"
    }
  }

  # As Cloud Run names it.
  mock_resource "google_cloud_run_v2_service" {
    defaults = {
      latest_ready_revision = "projects/affinity-test/locations/europe-west1/services/ingest/revisions/ingest-00007-abc"
    }
  }
}

variables {
  name   = "ingest"
  region = "europe-west1"
  function = {
    image           = "europe-west1-docker.pkg.dev/affinity-test/affinity/ingest:abc"
    source          = "gs://affinity-test-source/ingest-abc.zip"
    entry_point     = "Ingest"
    runtime         = "google-24/go126"
    environment     = { GOFLAGS = "-tags=disable_grpc_modules" }
    service_account = "projects/affinity-test/serviceAccounts/fn-build@affinity-test.iam.gserviceaccount.com"
  }
  variables = ["BIGTABLE_PROJECT", "FIRESTORE_PROJECT"]
  environment = {
    BIGTABLE_PROJECT  = "affinity-test"
    FIRESTORE_PROJECT = "affinity-test"
    TASKS_QUEUE       = "a variable that the function does not read"
  }
}

run "private_by_default" {
  command = plan

  assert {
    condition     = google_cloud_run_v2_service.this.ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY" && !google_cloud_run_v2_service.this.invoker_iam_disabled && length(google_cloud_run_v2_service_iam_member.invoker) == 0
    error_message = "A function can be called by default."
  }

  assert {
    condition     = output.environment == { BIGTABLE_PROJECT = "affinity-test", FIRESTORE_PROJECT = "affinity-test", GOMEMLIMIT = "460MiB", FUNCTION_TARGET = "Ingest" }
    error_message = "The function does not get exactly the variables that it reads, a limit of nine tenths of its memory, and its name: ${jsonencode(output.environment)}"
  }

  assert {
    condition = [for b in google_cloud_run_v2_service.this.build_config : [b.function_target, b.source_location, b.image_uri, b.base_image, b.enable_automatic_updates, b.environment_variables["GOFLAGS"], b.service_account]] == [[
      "Ingest", var.function.source, var.function.image, "europe-west1-docker.pkg.dev/serverless-runtimes/google-24/runtimes/go126", true, "-tags=disable_grpc_modules", var.function.service_account,
    ]]
    error_message = "The service is not the function of the image: ${jsonencode(google_cloud_run_v2_service.this.build_config[0])}"
  }

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].containers[0].image == var.function.image && google_cloud_run_v2_service.this.template[0].containers[0].base_image_uri == google_cloud_run_v2_service.this.build_config[0].base_image
    error_message = "The service runs another image."
  }

  assert {
    condition     = google_cloud_run_v2_service.this.scaling[0].min_instance_count == 0 && google_cloud_run_v2_service.this.template[0].containers[0].resources[0].cpu_idle
    error_message = "An instance stays warm, or is billed while it waits, by default."
  }

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].containers[0].resources[0].startup_cpu_boost && google_cloud_run_v2_service.this.template[0].containers[0].startup_probe[0].http_get[0].path == "/ready" && length(google_cloud_run_v2_service.this.template[0].containers[0].readiness_probe) == 0
    error_message = "The function starts without more CPU or without a probe, or is asked all the time."
  }

  assert {
    condition     = [for t in google_cloud_run_v2_service.this.traffic : [t.type, t.percent]] == [["TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", 100]]
    error_message = "The newest revision does not get all requests: ${jsonencode(google_cloud_run_v2_service.this.traffic)}"
  }

  assert {
    condition     = google_service_account.this[0].account_id == "fn-ingest"
    error_message = "The function does not have its own account."
  }
}

run "size" {
  command = plan

  variables {
    memory          = "2Gi"
    cpu             = "2"
    concurrency     = 6
    timeout_seconds = 600
    min_instances   = 1
    max_instances   = 4
    billing         = "instances"
    readiness       = true
  }

  assert {
    condition     = output.environment.GOMEMLIMIT == "1843MiB"
    error_message = "The limit is not nine tenths of the memory."
  }

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].containers[0].resources[0].limits == tomap({ cpu = "2", memory = "2Gi" }) && google_cloud_run_v2_service.this.template[0].max_instance_request_concurrency == 6 && google_cloud_run_v2_service.this.template[0].timeout == "600s"
    error_message = "An instance has another size."
  }

  assert {
    condition     = google_cloud_run_v2_service.this.scaling[0].min_instance_count == 1 && google_cloud_run_v2_service.this.scaling[0].max_instance_count == 4 && google_cloud_run_v2_service.this.template[0].scaling[0].max_instance_count == 4
    error_message = "The service has another number of instances: ${jsonencode(google_cloud_run_v2_service.this.scaling)}"
  }

  assert {
    condition     = !google_cloud_run_v2_service.this.template[0].containers[0].resources[0].cpu_idle && google_cloud_run_v2_service.this.template[0].containers[0].readiness_probe[0].http_get[0].path == "/ready"
    error_message = "The instances are not billed while they exist, or not asked whether they are ready."
  }
}

run "canary" {
  command = plan

  variables {
    traffic = { latest = 5, revision = "ingest-00007-abc" }
  }

  assert {
    condition = [for t in google_cloud_run_v2_service.this.traffic : [t.type, coalesce(t.revision, "newest"), t.percent]] == [
      ["TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "newest", 5], ["TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "ingest-00007-abc", 95],
    ]
    error_message = "The revisions have other shares: ${jsonencode(google_cloud_run_v2_service.this.traffic)}"
  }
}

run "rollback" {
  command = plan

  variables {
    traffic = { latest = 0, revision = "ingest-00007-abc" }
  }

  assert {
    condition     = [for t in google_cloud_run_v2_service.this.traffic : [t.revision, t.percent]] == [["ingest-00007-abc", 100]]
    error_message = "The earlier revision does not get all requests: ${jsonencode(google_cloud_run_v2_service.this.traffic)}"
  }
}

run "public" {
  variables {
    ingress       = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    public_access = "no_invoker_check"
  }

  assert {
    condition     = google_cloud_run_v2_service.this.invoker_iam_disabled && length(google_cloud_run_v2_service_iam_member.invoker) == 0
    error_message = "The load balancer may not call the function, or a grant to everyone is needed."
  }

  assert {
    condition     = output.revision == "ingest-00007-abc"
    error_message = "The variable traffic does not take the revision ${output.revision}."
  }

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].service_account == "fn-ingest@affinity-test.iam.gserviceaccount.com"
    error_message = "The function runs as another account."
  }
}

run "public_by_a_grant" {
  variables {
    ingress       = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    public_access = "all_users"
  }

  assert {
    condition     = !google_cloud_run_v2_service.this.invoker_iam_disabled && google_cloud_run_v2_service_iam_member.invoker["all"].role == "roles/run.invoker" && google_cloud_run_v2_service_iam_member.invoker["all"].member == "allUsers"
    error_message = "The load balancer may not call the function, or Cloud Run does not check callers."
  }
}

run "unset_variable" {
  command = plan

  variables {
    variables = ["BIGTABLE_PROJECT", "UNHEARD_OF"]
  }

  expect_failures = [google_cloud_run_v2_service.this]
}

run "private_function_for_everyone" {
  command = plan

  variables {
    public_access = "no_invoker_check"
  }

  expect_failures = [var.public_access]
}

run "everyone_as_an_invoker" {
  command = plan

  variables {
    invokers = { all = "allUsers" }
  }

  expect_failures = [var.invokers]
}

run "instances_of_little_memory" {
  command = plan

  variables {
    billing = "instances"
    memory  = "256Mi"
  }

  expect_failures = [var.billing]
}

run "traffic_without_a_revision" {
  command = plan

  variables {
    traffic = { latest = 5 }
  }

  expect_failures = [var.traffic]
}

run "traffic_to_another_service" {
  command = plan

  variables {
    traffic = { latest = 5, revision = "process-00007-abc" }
  }

  expect_failures = [var.traffic]
}

run "three_cpus" {
  command = plan

  variables {
    cpu = "3"
  }

  expect_failures = [var.cpu]
}

run "ingress_for_all" {
  command = plan

  variables {
    ingress = "INGRESS_TRAFFIC_ALL"
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
    secrets          = { OTEL_EXPORTER_OTLP_HEADERS = "otlp-headers", LOCATION_SECRET = "locations" }
    secret_versions  = { LOCATION_SECRET = "1" }
  }

  assert {
    condition     = { for e in google_cloud_run_v2_service.this.template[0].containers[0].env : e.name => e.value_source[0].secret_key_ref[0].version if length(e.value_source) > 0 } == { OTEL_EXPORTER_OTLP_HEADERS = "latest", LOCATION_SECRET = "1" }
    error_message = "The function does not get the versions of its secrets."
  }

  assert {
    condition     = output.environment.OTEL_SERVICE_NAME == "ingest" && length(output.environment) == 5
    error_message = "The function does not get the variables of its libraries beside its own."
  }

  assert {
    condition     = output.secrets == { OTEL_EXPORTER_OTLP_HEADERS = "otlp-headers", LOCATION_SECRET = "locations" }
    error_message = "The function does not get its secret."
  }

  assert {
    condition     = google_secret_manager_secret_iam_member.reader["OTEL_EXPORTER_OTLP_HEADERS"].role == "roles/secretmanager.secretAccessor" && google_secret_manager_secret_iam_member.reader["OTEL_EXPORTER_OTLP_HEADERS"].secret_id == "otlp-headers"
    error_message = "The function's account may not read the secret."
  }
}
