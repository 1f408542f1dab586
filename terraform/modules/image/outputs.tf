output "function" {
  description = "The function as services run it: the image, and what it was built from, which the module function takes."
  value = {
    image           = local.image
    source          = local.location
    entry_point     = var.entry_point
    runtime         = var.runtime
    environment     = local.environment
    service_account = var.build_service_account
  }

  # A service starts after the repository has its image.
  depends_on = [terraform_data.build]
}
