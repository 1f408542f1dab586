locals {
  region = join("-", slice(split("-", var.zone), 0, 2))

  # What the machine is, it reads at its start. Whatever changes here replaces it; its disk and its address stay.
  user_data = templatefile("${path.module}/cloud-init.yaml.tftpl", {
    package_url    = var.package_url
    package_sha256 = var.package_sha256
    settings       = flatten([for host, app in var.hosts : concat(["tls-host = ${host}"], app == "" ? [] : ["host = ${host}=${app}"])])
  })
}

resource "google_project_service" "compute" {
  service            = "compute.googleapis.com"
  disable_on_destroy = false
}

# The machine has an account without roles: the default account of a project can often edit all of it.
resource "google_service_account" "machine" {
  account_id   = substr(var.name, 0, 30)
  display_name = "Machine of Affinity"
}

resource "google_compute_network" "this" {
  name                    = var.name
  auto_create_subnetworks = false
  depends_on              = [google_project_service.compute]
}

resource "google_compute_subnetwork" "this" {
  name          = var.name
  network       = google_compute_network.this.id
  region        = local.region
  ip_cidr_range = "10.10.0.0/28"
}

# Clients reach the engine's TLS, by which it also gets its certificates. Nothing else is open to them.
resource "google_compute_firewall" "clients" {
  name          = "${var.name}-clients"
  network       = google_compute_network.this.id
  direction     = "INGRESS"
  source_ranges = ["0.0.0.0/0"]

  allow {
    protocol = "tcp"
    ports    = ["443"]
  }
}

# Operators reach SSH through Identity-Aware Proxy, which asks Google who they are, from these addresses.
resource "google_compute_firewall" "operators" {
  name          = "${var.name}-operators"
  network       = google_compute_network.this.id
  direction     = "INGRESS"
  source_ranges = ["35.235.240.0/20"]

  allow {
    protocol = "tcp"
    ports    = ["22"]
  }
}

resource "google_compute_address" "this" {
  name       = var.name
  region     = local.region
  depends_on = [google_project_service.compute]
}

# What the engine keeps. The machine comes and goes; this disk stays.
resource "google_compute_disk" "data" {
  name = "${var.name}-data"
  zone = var.zone
  type = "pd-balanced"
  size = var.disk_gb

  lifecycle {
    prevent_destroy = true
  }

  depends_on = [google_project_service.compute]
}

resource "google_compute_resource_policy" "snapshots" {
  name   = "${var.name}-daily"
  region = local.region

  snapshot_schedule_policy {
    schedule {
      daily_schedule {
        days_in_cycle = 1
        start_time    = "03:00"
      }
    }

    retention_policy {
      max_retention_days    = var.snapshot_days
      on_source_disk_delete = "KEEP_AUTO_SNAPSHOTS"
    }
  }

  depends_on = [google_project_service.compute]
}

resource "google_compute_disk_resource_policy_attachment" "snapshots" {
  name = google_compute_resource_policy.snapshots.name
  disk = google_compute_disk.data.name
  zone = var.zone
}

resource "terraform_data" "user_data" {
  input = local.user_data
}

resource "google_compute_instance" "this" {
  name         = var.name
  zone         = var.zone
  machine_type = var.machine_type

  boot_disk {
    initialize_params {
      # Ubuntu, because its images have cloud-init.
      image = "ubuntu-os-cloud/ubuntu-2404-lts-amd64"
      size  = 10
      type  = "pd-balanced"
    }
  }

  attached_disk {
    source      = google_compute_disk.data.id
    device_name = "data"
  }

  network_interface {
    subnetwork = google_compute_subnetwork.this.id

    access_config {
      nat_ip = google_compute_address.this.address
    }
  }

  metadata = {
    user-data              = local.user_data
    enable-oslogin         = "TRUE"
    block-project-ssh-keys = "TRUE"
  }

  service_account {
    email  = google_service_account.machine.email
    scopes = ["cloud-platform"]
  }

  shielded_instance_config {
    enable_secure_boot          = true
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  lifecycle {
    replace_triggered_by = [terraform_data.user_data]
    # A newer image is no reason to replace the machine.
    ignore_changes = [boot_disk[0].initialize_params[0].image]
  }
}

data "google_dns_managed_zone" "this" {
  count = var.dns_zone == null ? 0 : 1
  name  = var.dns_zone
}

resource "google_dns_record_set" "host" {
  for_each     = var.dns_zone == null ? {} : var.hosts
  managed_zone = data.google_dns_managed_zone.this[0].name
  name         = "${each.key}."
  type         = "A"
  ttl          = 300
  rrdatas      = [google_compute_address.this.address]
}
