mock_provider "google" {}

variables {
  project_id     = "affinity-test"
  hosts          = { "shop.example.com" = "shop", "other.example.com" = "other" }
  package_url    = "https://example.com/affinity_0.1.0_amd64.deb"
  package_sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
}

run "machine" {
  command = plan

  assert {
    condition     = google_compute_instance.this.machine_type == "e2-small" && google_compute_disk.data.size == 20 && google_compute_disk.data.zone == google_compute_instance.this.zone
    error_message = "The machine is not small, or its disk is in another zone."
  }

  assert {
    condition     = one(google_compute_firewall.clients.allow).ports == tolist(["443"]) && google_compute_firewall.operators.source_ranges == toset(["35.235.240.0/20"])
    error_message = "The machine is open to more than TLS for clients and SSH through Identity-Aware Proxy."
  }

  assert {
    condition     = one(google_compute_resource_policy.snapshots.snapshot_schedule_policy[0].retention_policy[*]).max_retention_days == 14
    error_message = "Snapshots are not kept for 14 days."
  }

  assert {
    condition     = length(google_dns_record_set.host) == 0 && length(output.dns_records) == 2
    error_message = "Without a zone the records are not the operator's."
  }
}

run "cloud_init" {
  command = plan

  assert {
    condition     = startswith(local.user_data, "#cloud-config\n") && !yamldecode(local.user_data).fs_setup[0].overwrite
    error_message = "The machine would not read its user data, or would format a disk that holds data."
  }

  assert {
    condition     = yamldecode(local.user_data).write_files[0].content == "data = /var/lib/affinity\nbackup = /var/lib/affinity-backups\ntls-host = other.example.com\nhost = other.example.com=other\ntls-host = shop.example.com\nhost = shop.example.com=shop\n"
    error_message = "The engine has other settings:\n${yamldecode(local.user_data).write_files[0].content}"
  }

  assert {
    condition     = strcontains(yamldecode(local.user_data).runcmd[1], "echo '${var.package_sha256}  /run/affinity.deb' | sha256sum --check")
    error_message = "The package is not compared with its hash before it is installed."
  }
}

run "all_apps" {
  command = plan

  variables {
    hosts = { "any.example.com" = "" }
  }

  assert {
    condition     = endswith(yamldecode(local.user_data).write_files[0].content, "affinity-backups\ntls-host = any.example.com\n")
    error_message = "The host does not serve all apps:\n${yamldecode(local.user_data).write_files[0].content}"
  }
}

run "records" {
  command = plan

  variables {
    dns_zone = "example"
  }

  assert {
    condition     = google_dns_record_set.host["shop.example.com"].name == "shop.example.com." && length(output.dns_records) == 0
    error_message = "Each host does not have its record."
  }
}

run "refuses_no_host" {
  command         = plan
  expect_failures = [var.hosts]

  variables {
    hosts = {}
  }
}

run "refuses_other_hosts" {
  command         = plan
  expect_failures = [var.hosts]

  variables {
    hosts = { "https://shop.example.com" = "shop" }
  }
}

run "refuses_a_host_of_all_apps_beside_one_of_one" {
  command         = plan
  expect_failures = [var.hosts]

  variables {
    hosts = { "shop.example.com" = "shop", "any.example.com" = "" }
  }
}

run "refuses_a_package_without_tls_or_hash" {
  command         = plan
  expect_failures = [var.package_url, var.package_sha256]

  variables {
    package_url    = "http://example.com/affinity.deb"
    package_sha256 = "0123"
  }
}

run "refuses_a_region_as_zone" {
  command         = plan
  expect_failures = [var.zone]

  variables {
    zone = "europe-west1"
  }
}
