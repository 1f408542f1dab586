# Where functions send traces and metrics.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-test"
  source_dir = null
}

run "nowhere_by_default" {
  command = plan

  assert {
    condition     = alltrue([for f in module.function : length([for name in keys(f.environment) : name if startswith(name, "OTEL_")]) == 0]) && length(google_project_service.secrets) == 0 && length(google_project_iam_member.traces) == 0
    error_message = "A function exports without being asked to."
  }
}

run "to_a_collector" {
  command = plan

  variables {
    telemetry = {
      variables      = { OTEL_EXPORTER_OTLP_ENDPOINT = "https://otlp.example.com", OTEL_TRACES_SAMPLER = "parentbased_traceidratio" }
      headers_secret = "otlp-headers"
    }
  }

  assert {
    condition     = alltrue([for f in module.function : f.environment.OTEL_EXPORTER_OTLP_ENDPOINT == "https://otlp.example.com" && f.environment.OTEL_TRACES_SAMPLER == "parentbased_traceidratio"])
    error_message = "Not every function gets the variables."
  }

  assert {
    condition     = alltrue([for name, f in module.function : f.environment.OTEL_SERVICE_NAME == name])
    error_message = "A function does not export under its own name."
  }

  assert {
    condition     = alltrue([for f in module.function : f.secrets.OTEL_EXPORTER_OTLP_HEADERS == "otlp-headers"]) && length(google_project_service.secrets) == 1
    error_message = "Not every function gets the headers from the secret."
  }
}

run "to_cloud_trace" {
  command = plan

  variables {
    telemetry = { variables = { OTEL_TRACES_EXPORTER = "google" } }
  }

  assert {
    condition     = toset(keys(google_project_iam_member.traces)) == toset(keys(module.function)) && alltrue([for m in google_project_iam_member.traces : m.role == "roles/telemetry.tracesWriter"])
    error_message = "Not every function may write spans, or one may do more."
  }

  assert {
    condition     = toset(keys(google_project_service.traces)) == toset(["cloudtrace.googleapis.com", "telemetry.googleapis.com"])
    error_message = "The plan does not enable what takes the spans."
  }
}

run "another_variable" {
  command = plan

  variables {
    telemetry = { variables = { DELETION_SLACK = "1s" } }
  }

  expect_failures = [var.telemetry]
}

run "a_key_in_the_open" {
  command = plan

  variables {
    telemetry = { variables = { OTEL_EXPORTER_OTLP_HEADERS = "x-key=1234" } }
  }

  expect_failures = [var.telemetry]
}

run "headers_for_nobody" {
  command = plan

  variables {
    telemetry = { headers_secret = "otlp-headers" }
  }

  expect_failures = [var.telemetry]
}
