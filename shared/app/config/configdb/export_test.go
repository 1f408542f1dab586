package configdb

var DocumentID = documentID
