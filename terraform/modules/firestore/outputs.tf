output "database" {
  description = "The database's name."
  value       = google_firestore_database.this.name
}

output "expiring" {
  description = "Field by collection after whose time Firestore deletes a document."
  value       = { for f in google_firestore_field.expiring : f.collection => f.field }
}
