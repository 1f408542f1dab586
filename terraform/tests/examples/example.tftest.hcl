# Each of environments/*.tfvars.example as it stands:
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
    error_message = "The example does not come to an endpoint for each host."
  }
}
