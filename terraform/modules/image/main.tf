locals {
  zip = var.source_zip == null ? "unpackaged" : try(filesha256(var.source_zip), "missing")

  # go build reads the first: the README says why. The second is toolchain of go.mod.
  environment = { GOFLAGS = "-tags=disable_grpc_modules", GOOGLE_RUNTIME_VERSION = "1.26.10" }

  # The tag stands for the source and for how it is built. So the image of a tag never changes, and a service gets
  # another image exactly when its function has changed.
  image    = "${var.repository}/${var.name}:${substr(sha256(jsonencode([local.zip, var.runtime, var.entry_point, local.environment])), 0, 20)}"
  location = "gs://${var.bucket}/${google_storage_bucket_object.source.name}"
}

resource "google_storage_bucket_object" "source" {
  name    = "${var.name}-${local.zip}.zip"
  bucket  = var.bucket
  source  = var.source_zip
  content = var.source_zip == null ? "unpackaged" : null

  lifecycle {
    # Terraform deletes the old source after the services have the new image.
    create_before_destroy = true

    precondition {
      condition     = var.source_zip == null || try(fileexists(var.source_zip), false)
      error_message = "Function ${var.name}: the file ${coalesce(var.source_zip, "zip")} does not exist. Run `go run ./scripts/package` in the repository first."
    }
  }
}

# The provider has no resource that builds: google_cloud_run_v2_service only records its build_config.
resource "terraform_data" "build" {
  count = var.source_zip == null ? 0 : 1

  triggers_replace = [local.image]

  provisioner "local-exec" {
    working_dir = "${path.module}/../../.."
    command = join(" ", [
      "go run ./scripts/image", "--uri", local.image, "--source", local.location, "--target", var.entry_point,
      "--base", "${var.region}-docker.pkg.dev/serverless-runtimes/${replace(var.runtime, "/", "/runtimes/")}",
      "--account", var.build_service_account, join(" ", [for name, value in local.environment : "--variable ${name}=${value}"]),
    ])
  }
}
