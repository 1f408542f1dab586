# One state belongs to one project: a plan with another project's variables fails.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-dev"
  source_dir = null
}

run "first_apply" {
  assert {
    condition     = terraform_data.project.output == "affinity-dev" && alltrue([for s in google_project_service.this : s.project == "affinity-dev"])
    error_message = "The state does not record its project."
  }
}

run "other_project" {
  command = plan

  variables {
    project_id = "affinity-prod"
  }

  expect_failures = [terraform_data.project]
}

run "same_project" {
  command = plan

  variables {
    longest_retention_days = 30
  }

  assert {
    condition     = terraform_data.project.output == "affinity-dev"
    error_message = "The state refuses its own project."
  }
}
