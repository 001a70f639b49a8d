class NotesController < ActionController::Base
  protect_from_forgery with: :null_session
  rescue_from(ActiveRecord::RecordNotFound) { head :not_found }

  def index
    @notes = Note.includes(:tags).order(:id)
    @notes = @notes.titled(params[:title]) if params[:title]
    respond_to do |format|
      format.html
      format.json { render json: @notes.as_json(only: %i[id title], include: { tags: { only: :name } }) }
    end
  end

  def show
    note = Note.find(params[:id])
    render json: { id: note.id, title: note.title, body: note.body, tags: note.tags.order(:id).map(&:name) }
  end

  def create
    note = Note.new(params.permit(:title, :body))
    Array(params[:tags]).each { |name| note.tags.build(name: name) }
    return render(json: note.errors.full_messages, status: :unprocessable_content) unless note.save
    redirect_to note_path(note), status: :see_other
  end

  def jobs = render(json: { counted: Note.where.not(words: nil).count, words: Note.sum(:words) })
  def broken = raise(ArgumentError, "broken on purpose")
end
