# Which commit runs. scripts/package writes it into release.json beside the zips, and not
# into the zips: each commit would then deploy every function. For the same reason no
# function has it as a label or a variable. The load balancer says it in a header, the
# output release says what the last apply deployed, and the bucket of sources what the last
# apply was of. A plan with the zips of another commit is refused unless release names it.

locals {
  # Null: no zips.
  packaged = var.source_dir == null ? null : try(jsondecode(file("${var.source_dir}/release.json")), { commit = "unknown", configuration = "unknown", dirty = true, sums = {} })
  release  = local.packaged == null ? null : "${local.packaged.commit}${local.packaged.dirty ? "-dirty" : ""}"

  # After a failed apply two may be there.
  releases_before = [for object in data.google_storage_bucket_objects.release.bucket_objects : trimprefix(object.name, "release/")]

  # Zips of other bytes than release.json says.
  other_zips = local.packaged == null ? [] : [for name, sum in local.packaged.sums : name if try(filesha256("${var.source_dir}/${name}.zip"), sum) != sum]
}

data "google_storage_bucket_objects" "release" {
  bucket = google_storage_bucket.source.id # unknown, and so not read, before the bucket exists
  prefix = "release/"
}

resource "terraform_data" "release" {
  lifecycle {
    precondition {
      condition     = local.packaged == null || try(fileexists("${var.source_dir}/release.json"), false)
      error_message = "${coalesce(var.source_dir, "-")}/release.json does not exist, so nobody knows of which commit the zips are. Run `go run ./scripts/package` in the repository first."
    }

    precondition {
      condition     = length(local.other_zips) == 0
      error_message = "${coalesce(var.source_dir, "-")} has zips that are not of ${coalesce(local.release, "-")}, of which release.json is: ${join(", ", local.other_zips)}. Run `go run ./scripts/package` without a name, so that all are of one commit."
    }

    precondition {
      condition     = var.release == null || var.release == local.release
      error_message = "release is ${coalesce(var.release, "-")}, but the zips in ${coalesce(var.source_dir, "-")} are of ${coalesce(local.release, "no commit")}. Check out ${coalesce(var.release, "-")} and run `go run ./scripts/package`, or give the commit that you mean to deploy."
    }

    precondition {
      condition     = local.release == null || var.release != null || !try(local.packaged.dirty, false)
      error_message = "The zips in ${coalesce(var.source_dir, "-")} are of a checkout that differs from its commit, so nobody can make them again. Commit the changes and run `go run ./scripts/package`, or say that you mean it with -var release=${coalesce(local.release, "-")}."
    }

    precondition {
      condition     = local.release == null || var.release != null || length(local.releases_before) == 0 || local.releases_before == [local.release]
      error_message = "The last apply was of ${join(" and ", local.releases_before)}, and the zips in ${coalesce(var.source_dir, "-")} are of ${coalesce(local.release, "-")}: this apply would deploy other functions. Nothing was changed. To change settings only, run `go run ./scripts/package --commit ${try(local.releases_before[0], "-")}` and plan again. To deploy ${coalesce(local.release, "-")}, plan with -var release=${coalesce(local.release, "-")}. See functions/docs/operate/upgrade.md."
    }
  }
}

# Written before the functions are deployed: it says what was tried last.
resource "google_storage_bucket_object" "release" {
  for_each = toset(local.release[*])

  bucket  = google_storage_bucket.source.name
  name    = "release/${each.key}"
  content = "An apply deployed the functions of this commit: see release.tf.\n"

  depends_on = [terraform_data.release]
}
