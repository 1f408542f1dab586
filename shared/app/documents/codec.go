package documents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// A value in memory is nil, a bool, an int64, a float64, a string, a []byte, a time.Time to
// the microsecond, a []any or a map[string]any, as Firestore has them.

var (
	timeType  = reflect.TypeFor[time.Time]()
	bytesType = reflect.TypeFor[[]byte]()
)

// encode returns a value as it is kept; at is the value of Now.
func encode(v reflect.Value, at time.Time) (any, error) {
	if !v.IsValid() {
		return nil, nil
	}
	switch v.Type() {
	case timeType:
		return v.Interface().(time.Time).UTC().Truncate(time.Microsecond), nil
	case bytesType:
		return append([]byte{}, v.Bytes()...), nil // as Firestore keeps nil
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.Interface, reflect.Pointer:
		return encode(v.Elem(), at)
	case reflect.Slice:
		if v.IsNil() {
			return nil, nil
		}
		all := make([]any, v.Len())
		for i := range all {
			var err error
			if all[i], err = encode(v.Index(i), at); err != nil {
				return nil, err
			}
		}
		return all, nil
	case reflect.Map:
		if v.IsNil() {
			return nil, nil
		}
		all := make(map[string]any, v.Len())
		for _, key := range v.MapKeys() {
			value, err := encode(v.MapIndex(key), at)
			if err != nil {
				return nil, err
			}
			if key.String() == "" {
				return nil, errors.New("a document cannot hold a map with an empty key")
			}
			all[key.String()] = value
		}
		return all, nil
	case reflect.Struct:
		return encodeFields(FieldsOf(v.Interface()), at)
	}
	return nil, fmt.Errorf("a document cannot hold a %s", v.Type())
}

func encodeFields(fields Fields, at time.Time) (map[string]any, error) {
	all := make(map[string]any, len(fields))
	for name, field := range fields {
		switch field.(type) {
		case removed:
			continue
		case storeTime:
			field = at
		}
		value, err := encode(reflect.ValueOf(field), at)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		all[name] = value
	}
	return all, nil
}

// decode sets a variable to a value.
func decode(value any, into reflect.Value) error {
	if into.Kind() == reflect.Pointer && value != nil {
		into.Set(reflect.New(into.Type().Elem()))
		return decode(value, into.Elem())
	}
	fits := false
	switch value := value.(type) {
	case nil:
		into.SetZero()
		fits = true
	case bool:
		if fits = into.Kind() == reflect.Bool; fits {
			into.SetBool(value)
		}
	case string:
		if fits = into.Kind() == reflect.String; fits {
			into.SetString(value)
		}
	case int64:
		if fits = into.CanInt() && !into.OverflowInt(value); fits {
			into.SetInt(value)
		} else if fits = into.CanFloat(); fits {
			into.SetFloat(float64(value))
		}
	case float64:
		if fits = into.CanFloat(); fits {
			into.SetFloat(value)
		}
	case time.Time:
		if fits = into.Type() == timeType; fits {
			into.Set(reflect.ValueOf(value))
		}
	case []byte:
		if fits = into.Type() == bytesType; fits {
			into.SetBytes(slices.Clone(value))
		}
	case []any:
		if into.Kind() == reflect.Slice {
			return decodeSlice(value, into)
		}
	case map[string]any:
		switch into.Kind() {
		case reflect.Struct:
			return decodeStruct(value, into)
		case reflect.Map:
			return decodeMap(value, into)
		}
	}
	if !fits {
		return fmt.Errorf("a %T is no %s", value, into.Type())
	}
	return nil
}

func decodeSlice(values []any, into reflect.Value) error {
	all := reflect.MakeSlice(into.Type(), len(values), len(values))
	for i, value := range values {
		if err := decode(value, all.Index(i)); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	into.Set(all)
	return nil
}

func decodeMap(values map[string]any, into reflect.Value) error {
	all := reflect.MakeMapWithSize(into.Type(), len(values))
	for name, value := range values {
		element := reflect.New(into.Type().Elem()).Elem()
		if err := decode(value, element); err != nil {
			return fmt.Errorf("entry %s: %w", name, err)
		}
		all.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), element)
	}
	into.Set(all)
	return nil
}

func decodeStruct(values map[string]any, into reflect.Value) (err error) {
	eachField(into, func(name, _ string, f reflect.Value) {
		value, ok := values[name]
		if !ok || err != nil {
			return
		}
		if failed := decode(value, f); failed != nil {
			err = fmt.Errorf("field %s: %w", name, failed)
		}
	})
	return err
}

// Keys of JSON objects that stand for what JSON cannot tell from texts.
const (
	timeKey  = "$time"
	bytesKey = "$bytes"
)

// toRecord returns the text of a document's record.
func toRecord(fields map[string]any) ([]byte, error) { return json.Marshal(marked(fields)) }

func marked(value any) any {
	switch value := value.(type) {
	case time.Time:
		return map[string]time.Time{timeKey: value}
	case []byte:
		return map[string][]byte{bytesKey: value}
	case []any:
		all := make([]any, len(value))
		for i, v := range value {
			all[i] = marked(v)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(value))
		for name, v := range value {
			all[name] = marked(v)
		}
		return all
	}
	return value
}

// ofRecord returns the fields of a document from the text of its record.
func ofRecord(text []byte) (map[string]any, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return nil, err
	}
	for name, value := range fields {
		var err error
		if fields[name], err = unmarked(value); err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
	}
	return fields, nil
}

func unmarked(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return n, nil
		}
		return value.Float64()
	case []any:
		for i := range value {
			if value[i], err = unmarked(value[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if text, ok := value[timeKey].(string); ok {
			return time.Parse(time.RFC3339Nano, text)
		}
		if text, ok := value[bytesKey].(string); ok {
			return base64.StdEncoding.DecodeString(text)
		}
		for name := range value {
			if value[name], err = unmarked(value[name]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}
