mock_provider "google" {}

variables {
  name                  = "ingest"
  region                = "europe-west1"
  entry_point           = "Ingest"
  bucket                = "affinity-test-source"
  repository            = "europe-west1-docker.pkg.dev/affinity-test/affinity"
  build_service_account = "projects/affinity-test/serviceAccounts/fn-build@affinity-test.iam.gserviceaccount.com"
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
    condition     = output.function.source == "gs://affinity-test-source/ingest-${filesha256("versions.tf")}.zip" && length(terraform_data.build) == 1
    error_message = "The image is not built from the uploaded object, but from ${output.function.source}."
  }

  assert {
    condition     = can(regex("^europe-west1-docker.pkg.dev/affinity-test/affinity/ingest:[0-9a-f]{20}$", output.function.image))
    error_message = "The image is ${output.function.image}."
  }

  assert {
    condition     = output.function.environment == { GOFLAGS = "-tags=disable_grpc_modules", GOOGLE_RUNTIME_VERSION = "1.26.10" } && output.function.runtime == "google-24/go126" && output.function.entry_point == "Ingest"
    error_message = "The function is not built as scripts/check and releases are, or with another runtime or entry point."
  }
}

# Another source or runtime is another image.
run "another_source" {
  command = plan

  variables {
    source_zip = "outputs.tf"
  }

  assert {
    condition     = output.function.image != run.source.function.image
    error_message = "Another zip has the same image."
  }
}

run "another_runtime" {
  command = plan

  variables {
    source_zip = "versions.tf"
    runtime    = "google-24/go127"
  }

  assert {
    condition     = output.function.image != run.source.function.image
    error_message = "Another runtime has the same image."
  }
}

run "unpackaged" {
  command = plan

  assert {
    condition     = length(terraform_data.build) == 0 && google_storage_bucket_object.source.content == "unpackaged"
    error_message = "A plan without a zip builds something."
  }
}

run "missing_zip" {
  command = plan

  variables {
    source_zip = "../dist/ingest.zip"
  }

  expect_failures = [google_storage_bucket_object.source]
}

run "old_runtime" {
  command = plan

  variables {
    runtime = "google-22/go125"
  }

  expect_failures = [var.runtime]
}
