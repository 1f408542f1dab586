# A plan deploys the functions of the commit of the last apply, unless release names
# another one. tests/release has a release.json, and no zips: the plans are of the check
# alone. The mock of the bucket's objects is what the last apply wrote.

mock_provider "google" {
  source = "./tests/mocks"
}

override_data {
  target = data.google_storage_bucket_objects.release
  values = {
    bucket_objects = [{ name = "release/aaaa", content_type = "", media_link = "", self_link = "", storage_class = "" }]
  }
}

variables {
  project_id = "affinity-test"
  source_dir = "tests/release/aaaa"
}

# Without zips nothing is deployed, so nothing is said.
run "bucket" {
  variables {
    source_dir = null
  }

  assert {
    condition     = output.release == null && length(google_storage_bucket_object.release) == 0
    error_message = "A plan without zips is of a release: ${jsonencode(output.release)}."
  }
}

run "same" {
  command = plan

  plan_options {
    target = [google_storage_bucket_object.release]
  }

  assert {
    condition     = keys(google_storage_bucket_object.release) == ["aaaa"]
    error_message = "The apply writes ${jsonencode(keys(google_storage_bucket_object.release))}."
  }
}

run "another" {
  command = plan

  plan_options {
    target = [terraform_data.release]
  }

  variables {
    source_dir = "tests/release/bbbb"
  }

  expect_failures = [terraform_data.release]
}

run "another_named" {
  command = plan

  plan_options {
    target = [google_storage_bucket_object.release]
  }

  variables {
    source_dir = "tests/release/bbbb"
    release    = "bbbb"
  }

  assert {
    condition     = keys(google_storage_bucket_object.release) == ["bbbb"]
    error_message = "The apply writes ${jsonencode(keys(google_storage_bucket_object.release))}."
  }
}

run "wrongly_named" {
  command = plan

  plan_options {
    target = [terraform_data.release]
  }

  variables {
    release = "bbbb"
  }

  expect_failures = [terraform_data.release]
}

run "after_a_failed_apply" {
  command = plan

  override_data {
    target = data.google_storage_bucket_objects.release
    values = {
      bucket_objects = [for name in ["aaaa", "bbbb"] : { name = "release/${name}", content_type = "", media_link = "", self_link = "", storage_class = "" }]
    }
  }

  plan_options {
    target = [terraform_data.release]
  }

  expect_failures = [terraform_data.release]
}

run "dirty" {
  command = plan

  override_data {
    target = data.google_storage_bucket_objects.release
    values = {
      bucket_objects = [{ name = "release/cccc-dirty", content_type = "", media_link = "", self_link = "", storage_class = "" }]
    }
  }

  plan_options {
    target = [terraform_data.release]
  }

  variables {
    source_dir = "tests/release/dirty"
  }

  expect_failures = [terraform_data.release]
}

run "dirty_named" {
  command = plan

  plan_options {
    target = [google_storage_bucket_object.release]
  }

  variables {
    source_dir = "tests/release/dirty"
    release    = "cccc-dirty"
  }
}

run "not_packaged" {
  command = plan

  plan_options {
    target = [terraform_data.release]
  }

  variables {
    source_dir = "tests/release"
    release    = "unknown-dirty"
  }

  expect_failures = [terraform_data.release]
}

# release.json is of a zip of other bytes.
run "other_zip" {
  command = plan

  plan_options {
    target = [terraform_data.release]
  }

  variables {
    source_dir = "tests/release/mixed"
    release    = "aaaa"
  }

  expect_failures = [terraform_data.release]
}
