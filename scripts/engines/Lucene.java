import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.FeatureField;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Term;
import org.apache.lucene.queries.function.FunctionScoreQuery;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.ConstantScoreQuery;
import org.apache.lucene.search.DoubleValues;
import org.apache.lucene.search.DoubleValuesSource;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryRescorer;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * Answers searches in the language of Elasticsearch and OpenSearch, as far as boosts use it, with Lucene's scores.
 *
 * <p>The first line of standard input is a JSON array of documents, {"id","title","fields":{"brand":["Apple"]},
 * "features":{"affinity":["brand_Apple"]}}; each further line is a search. Each line of output answers one: {"hits":
 * [["id",score],...]} or {"error":"..."}. A member that the program does not know is an error. Documents of equal
 * score stand in the order of the input. lucene_test.go starts it.
 */
public final class Lucene {
  private final IndexSearcher searcher;

  private Lucene(IndexSearcher searcher) {
    this.searcher = searcher;
  }

  public static void main(String[] args) throws IOException {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    Lucene lucene = new Lucene(index(list(Json.parse(in.readLine()))));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(lucene.answer(line));
      if (!in.ready()) {
        out.flush();
      }
    }
    out.flush();
  }

  private static IndexSearcher index(List<Object> documents) throws IOException {
    ByteBuffersDirectory directory = new ByteBuffersDirectory();
    try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
      for (Object each : documents) {
        Map<String, Object> d = object(each, Set.of("id", "title", "fields", "features"));
        Document document = new Document();
        document.add(new StringField("_id", string(d.get("id")), Field.Store.YES));
        document.add(new TextField("title", string(d.get("title")), Field.Store.NO));
        for (Map.Entry<String, Object> field : object(d.get("fields"), null).entrySet()) {
          for (Object value : list(field.getValue())) {
            document.add(new StringField(field.getKey(), string(value), Field.Store.NO));
          }
        }
        for (Map.Entry<String, Object> field : object(d.get("features"), null).entrySet()) {
          for (Object feature : list(field.getValue())) {
            document.add(new FeatureField(field.getKey(), string(feature), 1));
          }
        }
        writer.addDocument(document);
      }
      writer.forceMerge(1);
    }
    return new IndexSearcher(DirectoryReader.open(directory));
  }

  private String answer(String line) {
    StringBuilder text = new StringBuilder();
    try {
      Map<String, Object> search = object(Json.parse(line), Set.of("query", "rescore", "size"));
      int size = (int) number(search.getOrDefault("size", 10.0));
      Query query = query(search.get("query"));
      TopDocs top;
      if (search.containsKey("rescore")) {
        top = rescore(query, object(search.get("rescore"), Set.of("window_size", "query")), size);
      } else {
        top = searcher.search(query, size);
      }
      for (ScoreDoc hit : top.scoreDocs) {
        text.append(text.length() == 0 ? "{\"hits\":[[" : ",[");
        text.append(Json.quote(searcher.doc(hit.doc).get("_id"))).append(',').append(hit.score).append(']');
      }
      return text.length() == 0 ? "{\"hits\":[]}" : text.append("]}").toString();
    } catch (IOException | RuntimeException e) {
      return "{\"error\":" + Json.quote(e.toString()) + "}";
    }
  }

  private TopDocs rescore(Query query, Map<String, Object> rescore, int size) throws IOException {
    Map<String, Object> q = object(rescore.get("query"),
        Set.of("rescore_query", "query_weight", "rescore_query_weight", "score_mode"));
    float first = (float) number(q.getOrDefault("query_weight", 1.0));
    float second = (float) number(q.getOrDefault("rescore_query_weight", 1.0));
    String mode = string(q.getOrDefault("score_mode", "total"));
    TopDocs window = searcher.search(query, (int) number(rescore.getOrDefault("window_size", 10.0)));
    return new QueryRescorer(query(q.get("rescore_query"))) {
      @Override
      protected float combine(float score, boolean matches, float other) {
        if (!matches) {
          return score * first;
        }
        switch (mode) {
          case "total":
            return score * first + other * second;
          case "multiply":
            return score * first * (other * second);
          default:
            throw new IllegalArgumentException("rescore with score_mode " + mode);
        }
      }
    }.rescore(searcher, window, size);
  }

  private Query query(Object json) {
    Map<String, Object> one = object(json, null);
    if (one.size() != 1) {
      throw new IllegalArgumentException("a query has one member, not " + one.keySet());
    }
    String kind = one.keySet().iterator().next();
    Object body = one.get(kind);
    switch (kind) {
      case "match_all":
        return boosted(new MatchAllDocsQuery(), object(body, Set.of("boost")));
      case "match":
        return match(object(body, Set.of("title")));
      case "term":
        return term(object(body, null));
      case "constant_score":
        return boosted(new ConstantScoreQuery(query(object(body, Set.of("filter", "boost")).get("filter"))),
            object(body, null));
      case "bool":
        return bool(object(body, Set.of("must", "should", "filter", "boost")));
      case "rank_feature":
        return rankFeature(object(body, Set.of("field", "linear", "boost")));
      case "function_score":
        return functionScore(object(body,
            Set.of("query", "functions", "score_mode", "boost_mode", "max_boost", "boost")));
      default:
        throw new IllegalArgumentException("query of unknown kind " + kind);
    }
  }

  private static Query boosted(Query query, Map<String, Object> body) {
    return body.containsKey("boost") ? new BoostQuery(query, (float) number(body.get("boost"))) : query;
  }

  private static Query match(Map<String, Object> body) {
    BooleanQuery.Builder words = new BooleanQuery.Builder();
    for (String word : string(body.get("title")).split(" ")) {
      words.add(new TermQuery(new Term("title", word)), Occur.SHOULD);
    }
    return words.build();
  }

  private static Query term(Map<String, Object> body) {
    if (body.size() != 1) {
      throw new IllegalArgumentException("term has one field, not " + body.keySet());
    }
    Map.Entry<String, Object> field = body.entrySet().iterator().next();
    if (field.getValue() instanceof String) {
      return new TermQuery(new Term(field.getKey(), string(field.getValue())));
    }
    Map<String, Object> value = object(field.getValue(), Set.of("value", "boost"));
    return boosted(new TermQuery(new Term(field.getKey(), string(value.get("value")))), value);
  }

  private Query bool(Map<String, Object> body) {
    BooleanQuery.Builder bool = new BooleanQuery.Builder();
    Map<String, Occur> kinds = Map.of("must", Occur.MUST, "should", Occur.SHOULD, "filter", Occur.FILTER);
    for (Map.Entry<String, Object> clause : body.entrySet()) {
      if (clause.getKey().equals("boost")) {
        continue;
      }
      List<Object> queries = clause.getValue() instanceof List ? list(clause.getValue()) : List.of(clause.getValue());
      for (Object each : queries) {
        bool.add(query(each), kinds.get(clause.getKey()));
      }
    }
    return boosted(bool.build(), body);
  }

  /** A field of rank features names the feature after the first dot. */
  private static Query rankFeature(Map<String, Object> body) {
    String name = string(body.get("field"));
    int dot = name.indexOf('.');
    if (dot < 0 || !object(body.get("linear"), Set.of()).isEmpty()) {
      throw new IllegalArgumentException("rank_feature " + body);
    }
    return FeatureField.newLinearQuery(name.substring(0, dot), name.substring(dot + 1),
        (float) number(body.getOrDefault("boost", 1.0)));
  }

  private Query functionScore(Map<String, Object> body) {
    List<Query> filters = new ArrayList<>();
    List<Double> weights = new ArrayList<>();
    for (Object each : list(body.getOrDefault("functions", List.of()))) {
      Map<String, Object> function = object(each, Set.of("filter", "weight"));
      filters.add(function.containsKey("filter") ? query(function.get("filter")) : new MatchAllDocsQuery());
      double weight = (float) number(function.get("weight"));
      if (!(weight >= 0)) {
        throw new IllegalArgumentException("a weight is below 0");
      }
      weights.add(weight);
    }
    Query inner = body.containsKey("query") ? query(body.get("query")) : new MatchAllDocsQuery();
    Factor factor = new Factor(filters, weights, string(body.getOrDefault("score_mode", "multiply")),
        string(body.getOrDefault("boost_mode", "multiply")),
        (float) number(body.getOrDefault("max_boost", (double) Float.MAX_VALUE)));
    return boosted(new FunctionScoreQuery(inner, factor), body);
  }

  /** The score of a document times what the weights of the filters that match it come to. */
  private static final class Factor extends DoubleValuesSource {
    private final List<Query> filters;
    private final List<DoubleValuesSource> matches = new ArrayList<>();
    private final List<Double> weights;
    private final String scoreMode;
    private final String boostMode;
    private final double limit;

    Factor(List<Query> filters, List<Double> weights, String scoreMode, String boostMode, double limit) {
      if (!Set.of("sum", "multiply").contains(scoreMode) || !Set.of("multiply", "replace").contains(boostMode)) {
        throw new IllegalArgumentException("score_mode " + scoreMode + ", boost_mode " + boostMode);
      }
      this.filters = filters;
      this.weights = weights;
      this.scoreMode = scoreMode;
      this.boostMode = boostMode;
      this.limit = limit;
      for (Query filter : filters) {
        matches.add(DoubleValuesSource.fromQuery(new ConstantScoreQuery(filter)));
      }
    }

    @Override
    public DoubleValues getValues(LeafReaderContext context, DoubleValues scores) throws IOException {
      List<DoubleValues> of = new ArrayList<>();
      for (DoubleValuesSource source : matches) {
        of.add(source.getValues(context, null));
      }
      return new DoubleValues() {
        private double factor;

        @Override
        public double doubleValue() throws IOException {
          return Math.min(factor, limit) * (boostMode.equals("multiply") ? scores.doubleValue() : 1);
        }

        @Override
        public boolean advanceExact(int doc) throws IOException {
          double sum = 0;
          double product = 1;
          boolean any = false;
          for (int i = 0; i < of.size(); i++) {
            if (of.get(i).advanceExact(doc)) {
              sum += weights.get(i);
              product *= weights.get(i);
              any = true;
            }
          }
          factor = !any ? 1 : scoreMode.equals("sum") ? sum : product;
          return scores.advanceExact(doc);
        }
      };
    }

    @Override
    public DoubleValuesSource rewrite(IndexSearcher searcher) throws IOException {
      for (int i = 0; i < matches.size(); i++) {
        matches.set(i, matches.get(i).rewrite(searcher));
      }
      return this;
    }

    @Override
    public boolean needsScores() {
      return true;
    }

    @Override
    public boolean isCacheable(LeafReaderContext context) {
      return false;
    }

    @Override
    public boolean equals(Object other) {
      return this == other;
    }

    @Override
    public int hashCode() {
      return Objects.hash(filters, weights, scoreMode, boostMode, limit);
    }

    @Override
    public String toString() {
      return "factor(" + filters + ", " + weights + ")";
    }
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> object(Object json, Set<String> known) {
    if (json == null && known == null) {
      return Map.of();
    }
    Map<String, Object> map = (Map<String, Object>) json;
    if (known != null && !known.containsAll(map.keySet())) {
      throw new IllegalArgumentException("members " + map.keySet() + ", known are " + known);
    }
    return map;
  }

  @SuppressWarnings("unchecked")
  private static List<Object> list(Object json) {
    return (List<Object>) json;
  }

  private static String string(Object json) {
    return (String) json;
  }

  private static double number(Object json) {
    return (Double) json;
  }

  /** Reads JSON: the JDK has no reader of its own. */
  private static final class Json {
    private final String text;
    private int at;

    private Json(String text) {
      this.text = text;
    }

    static Object parse(String text) {
      Json json = new Json(text);
      Object value = json.value();
      if (json.next() != 0) {
        throw json.wrong();
      }
      return value;
    }

    private Object value() {
      char c = next();
      switch (c) {
        case '{':
          Map<String, Object> map = new LinkedHashMap<>();
          at++;
          while (next() != '}') {
            String key = quoted();
            expect(':');
            map.put(key, value());
            if (next() != '}') {
              expect(',');
            }
          }
          at++;
          return map;
        case '[':
          List<Object> list = new ArrayList<>();
          at++;
          while (next() != ']') {
            list.add(value());
            if (next() != ']') {
              expect(',');
            }
          }
          at++;
          return list;
        case '"':
          return quoted();
        default:
          int start = at;
          while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
            at++;
          }
          if (start == at) {
            throw wrong();
          }
          return Double.valueOf(text.substring(start, at));
      }
    }

    private String quoted() {
      expect('"');
      StringBuilder s = new StringBuilder();
      for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
        if (c == '\\') {
          c = text.charAt(at++);
          int plain = "bfnrt".indexOf(c);
          if (plain >= 0) {
            c = "\b\f\n\r\t".charAt(plain);
          } else if (c == 'u') {
            c = (char) Integer.parseInt(text.substring(at, at + 4), 16);
            at += 4;
          }
        }
        s.append(c);
      }
      return s.toString();
    }

    /** The next character that is not a space; 0 at the end. */
    private char next() {
      while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
        at++;
      }
      return at < text.length() ? text.charAt(at) : 0;
    }

    private void expect(char c) {
      if (next() != c) {
        throw wrong();
      }
      at++;
    }

    private IllegalArgumentException wrong() {
      return new IllegalArgumentException("JSON at " + at + " of " + text);
    }

    static String quote(String s) {
      StringBuilder quoted = new StringBuilder("\"");
      for (char c : s.toCharArray()) {
        if (c < ' ' || c == '"' || c == '\\') {
          quoted.append(String.format("\\u%04x", (int) c));
        } else {
          quoted.append(c);
        }
      }
      return quoted.append('"').toString();
    }
  }
}
