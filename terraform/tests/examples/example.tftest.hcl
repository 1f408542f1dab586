# Applies an unchanged environments/*.tfvars.example:
#   terraform test -test-directory=tests/examples -var-file=environments/prod.tfvars.example

mock_provider "google" {
  source = "./tests/mocks"
}

run "apply" {
  variables {
    source_dir = null
  }

  assert {
    condition     = output.endpoint != null && length(output.dns_records) == 1 + length(var.customers)
    error_message = "The example does not make an endpoint for each host."
  }

  # Production data can be restored, and its cost raises an alert.
  assert {
    condition     = var.environment != "prod" || var.point_in_time_recovery && var.backup_days > 0 && var.replay_days > 1 && module.monitoring.budget != null
    error_message = "The production example lacks backups, events to replay onto them, point-in-time recovery or a budget."
  }
}
